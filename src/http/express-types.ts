/**
 * What is used of Express, 4 and 5, restated; `test/types/express.ts` checks it against the real types.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request. */
export interface ExpressRequest extends IncomingMessage {
  /** Path and query as the client sent them; a router changes `url`, not this. */
  originalUrl: string
}

/** What of a request Express's own types leave open or do not have. */
export interface RequestExtras {
  body?: unknown
  rawBody?: unknown
  file?: unknown
  files?: unknown
  route?: ExpressRoute
  idempotency?: unknown
}

export type ExpressNext = (error?: unknown) => void

export type ExpressMiddleware<Request> = (req: Request, res: ServerResponse, next: ExpressNext) => void

type ErrorHandler = (error: unknown, req: IncomingMessage, res: ServerResponse, next: ExpressNext) => void

/** The route a request is in: what was mounted for it, in order, and a way to mount more. */
export interface ExpressRoute {
  readonly stack?: readonly { readonly handle?: unknown }[]
  readonly methods?: Readonly<Record<string, boolean | undefined>>
  all(handler: ErrorHandler): unknown
}
