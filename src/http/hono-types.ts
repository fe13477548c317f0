/**
 * What is used of Hono 4, restated; `test/peers/hono-types.test.ts` checks it against the real types.
 */
import type { HttpAttempt } from './exchange.js'
import type { Body } from './options.js'

/** What handlers and callbacks see of a context, if they do not name Hono's own `Context`. */
export interface HonoContext {
  readonly req: HonoRequest
  readonly env: Body
  /** What a handler behind has thrown, once the application's error handler has made an answer of it. */
  readonly error: Error | undefined
  readonly finalized: boolean
  get res(): Response
  /** Undefined takes the answer away; else the headers of the one before join those of the next. */
  set res(response: Response | undefined)
  get(name: string): Body
  set(name: string, value: unknown): void
  newResponse(body: null): Response
}

/** Hono's request: one read of the body is remembered for all others. */
export interface HonoRequest {
  readonly raw: Request
  readonly method: string
  readonly url: string
  readonly path: string
  /** What has been read, by the way it was read. */
  readonly bodyCache: object
  header(name: string): string | undefined
  param(name: string): Body
  query(name: string): string | undefined
  arrayBuffer(): Promise<ArrayBuffer>
  formData(): Promise<FormData>
  parseBody(options: { readonly all: true }): Promise<object>
}

/** What `idempotent` makes, for `app.use`, `app.post` and the like. */
export type HonoMiddleware<Context> = (c: Context, next: () => Promise<void>) => Promise<Response | undefined>

/**
 * For `new Hono<{ Variables: HonoVariables<Tx> }>()`, so that `c.get('idempotency')` has a type. Undefined where a request passed
 * unprotected.
 */
export interface HonoVariables<Tx = Body> {
  readonly idempotency: HttpAttempt<Tx> | undefined
}
