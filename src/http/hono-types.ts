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
  readonly var: Body
  newResponse(body: null): Response
  header(name: string, value?: string, options?: { readonly append?: boolean }): void
  status(status: number): void
  json(value: unknown, status?: number, headers?: HonoHeaders): Response
  text(text: string, status?: number, headers?: HonoHeaders): Response
  html(html: string, status?: number, headers?: HonoHeaders): Response | Promise<Response>
  body(data: Body, status?: number, headers?: HonoHeaders): Response
  redirect(location: string, status?: number): Response
  notFound(): Response | Promise<Response>
}

type HonoHeaders = Record<string, string | string[]>

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
  json(): Promise<Body>
  text(): Promise<string>
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
