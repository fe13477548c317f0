/**
 * What is used of Express, 4 and 5, restated; `test/types/express.ts` checks it against the real types.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpAttempt } from './exchange.js'
import type { Body } from './options.js'

declare global {
  // The interface that Express's types leave for others to add to: `req.user` and the like are seen here too, without an import.
  namespace Express {
    interface Request {
      /** The attempt, for handlers behind `idempotent(safe, options)`; its `tx` is what the store gives. */
      idempotency?: HttpAttempt<Body>
    }
  }
}

/** What handlers and callbacks see of a request, if they do not name Express's own `Request`. */
export interface ExpressRequest extends IncomingMessage, Express.Request {
  /** Path and query as the client sent them; a router changes `url`, not this. */
  readonly originalUrl: string
  readonly baseUrl: string
  readonly path: string
  /** Texts; a wildcard's is a list in Express 5. */
  readonly params: Readonly<Record<string, Body>>
  readonly query: Body
  readonly ip?: string | undefined
  get(name: string): string | undefined
}

/** What of a request Express's own types leave open or do not have. */
export interface RequestExtras {
  body?: unknown
  rawBody?: unknown
  file?: unknown
  files?: unknown
  route?: ExpressRoute
  next?: ExpressNext
}

/** Express's `next`: on to the next handler, or with an error to the error handler. */
export type ExpressNext = (error?: unknown) => void

/** What `idempotent` and `serve` make, for `app.use`, `app.post` and `router.use` of Express 4 and 5. */
export type ExpressMiddleware<Request> = (req: Request, res: ServerResponse, next: ExpressNext) => void

/** The route a request is in: what was mounted for it, in order, and a way to mount more. */
export interface ExpressRoute {
  readonly stack?: readonly { readonly handle?: unknown }[]
  readonly methods?: Readonly<Record<string, boolean | undefined>>
  all(handler: (...values: never[]) => void): unknown
}
