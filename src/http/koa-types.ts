/**
 * What is used of Koa, restated; `test/peers/koa-types.test.ts` checks it against the real types.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Body } from './options.js'

/** What handlers and callbacks see of a context, if they do not name Koa's own `Context`. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** `body` and `rawBody` are what a parser has left. */
  readonly request: { readonly body?: Body; readonly rawBody?: unknown }
  /** In it the attempt, as `idempotency`, for handlers behind the middleware. */
  state: Body
  readonly method: string
  /** Path and query as the client sent them, before any router took its prefix off. */
  readonly originalUrl: string
  readonly headers: IncomingMessage['headers']
  readonly ip: string
  status: number
  body: unknown
  respond?: boolean | undefined
  onerror(error: Error): void
  set(name: string, value: string | string[]): void
}

/** For `app.use` and the routes of a router. */
export type KoaMiddleware<Context> = (context: Context, next: () => Promise<unknown>) => Promise<void>
