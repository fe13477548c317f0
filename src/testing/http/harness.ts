/**
 * What somebody who proves an HTTP adapter gives to the suite, and what they are given to mount.
 */
import type { HttpAttempt } from '../../http/exchange.js'
import type { Body, HttpOptions } from '../../http/options.js'
import type { Reply } from '../../http/reply.js'
import type { Mode } from '../../options.js'
import type { Retrysafe } from '../../retrysafe.js'
import type { EffectLedger, OpenedStore } from '../store/harness.js'

/** How a handler that exists answers; the adapter carries it out with the framework's own response object. */
export type Said =
  | { readonly do: 'json'; readonly status: number; readonly value: unknown; readonly headers?: SaidHeaders }
  | { readonly do: 'text'; readonly status: number; readonly text: string; readonly headers?: SaidHeaders }
  | {
      readonly do: 'bytes'
      readonly status: number
      readonly bytes: Uint8Array
      readonly headers?: SaidHeaders
    }
  /** Sent piece by piece from a readable stream. */
  | {
      readonly do: 'stream'
      readonly status: number
      readonly pieces: readonly Uint8Array[]
      readonly headers?: SaidHeaders
    }
  /** Sent by several writes and an end. */
  | {
      readonly do: 'writes'
      readonly status: number
      readonly pieces: readonly string[]
      readonly headers?: SaidHeaders
    }
  | { readonly do: 'empty'; readonly status: number; readonly headers?: SaidHeaders }
  | { readonly do: 'redirect'; readonly status: number; readonly location: string }
  /** Thrown, or handed to the framework's error handling. */
  | { readonly do: 'throw'; readonly error: Error }

export type SaidHeaders = Readonly<Record<string, string>>

/** What a handler of the suite is called with. */
export interface Given<Tx> {
  /** Absent where a request passed unprotected. */
  readonly attempt: HttpAttempt<Tx> | undefined
  /** The body as the handler sees it. */
  readonly body: unknown
}

/** Options for `idempotent`; none of them is given the request, whose type is the framework's. */
export type RouteOptions = Omit<HttpOptions, 'scope' | 'fingerprint'>

interface RouteBase {
  readonly method: string
  readonly path: string
  /** For `idempotent`. */
  readonly options: RouteOptions
}

/** A route to mount behind `idempotent`. */
export type HttpRoute<Tx> =
  /** A handler that returns a reply: `idempotent(safe, options, handler)`. */
  | (RouteBase & { readonly kind: 'replies'; run(given: Given<Tx>): Promise<Reply> })
  /** A handler that exists: `idempotent(safe, options)` in front of it; what `run` says is carried out by the adapter. */
  | (RouteBase & { readonly kind: 'around'; run(given: Given<Tx>): Promise<Said> })

export interface HttpSite<Tx extends object> {
  readonly safe: Retrysafe<Tx>
  readonly routes: readonly HttpRoute<Tx>[]
}

export interface HttpHarness<Tx extends object> {
  /** The mode that the routes run in. */
  readonly mode: Mode
  /** Which kind of handler is mounted. */
  readonly handlers: HttpRoute<Tx>['kind']
  /** Opens a client of the ledger. */
  open(): Promise<OpenedStore<Tx>>
  readonly ledger: EffectLedger<Tx>
  /** The `Authorization` header of the framework's request: the suite's scope. */
  caller(request: Body): string
  /** Mounts the routes in a new application on a port of its own. */
  start(site: HttpSite<Tx>): Promise<{ readonly url: string; close(): Promise<void> }>
  /** Ways to answer that the framework does not have, each with its reason. */
  readonly lacks?: Readonly<Partial<Record<Said['do'], string>>>
}
