/**
 * What is used of Fastify 5, restated; `test/peers/fastify-types.test.ts` checks it against the real types.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Readable } from 'node:stream'
import type { HttpAttempt } from './exchange.js'
import type { Body } from './options.js'

/** What handlers and callbacks see of a request, if they do not name Fastify's own `FastifyRequest`. */
export interface FastifyRequest {
  readonly raw: IncomingMessage | Http2ServerRequest
  readonly method: string
  /** Path and query as the client sent them, before any `rewriteUrl`. */
  readonly originalUrl: string
  readonly url: string
  readonly params: Body
  readonly query: Body
  readonly headers: IncomingMessage['headers']
  readonly ip: string
  readonly is404: boolean
  readonly routeOptions: { readonly bodyLimit?: number | undefined; readonly config: object }
  body?: Body
  /** The attempt, for handlers behind the plugin; its `tx` is what the store gives. */
  idempotency?: HttpAttempt<Body> | undefined
}

/** What is used of a reply. */
export interface FastifyReply {
  readonly raw: ServerResponse | Http2ServerResponse
  readonly sent: boolean
  code(status: number): unknown
  header(name: string, value: unknown): unknown
  getHeaders(): Readonly<Record<string, unknown>>
  removeHeader(name: string): unknown
  send(payload?: unknown): unknown
  hijack(): unknown
  callNotFound(): unknown
}

/** Ends a hook or a plugin: on to what follows, or with an error to who handles it. */
export type FastifyDone = (error?: Error) => void

/** What a plugin is given. The hooks' own types are the framework's and depend on its generics: {@link FastifyHooks} says what is used. */
export interface FastifyInstance {
  hasRequestDecorator(name: string): boolean
  decorateRequest(name: string): unknown
  addHook(name: never, hook: never): unknown
}

/** The hooks that are used. */
export interface FastifyHooks {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): unknown
  addHook(name: 'preHandler', hook: FastifyPreHandler): unknown
  addHook(
    name: 'preParsing',
    hook: (request: FastifyRequest, reply: unknown, payload: Readable, done: () => void) => void,
  ): unknown
  addHook(
    name: 'onError',
    hook: (request: FastifyRequest, reply: unknown, error: unknown, done: () => void) => void,
  ): unknown
}

/** What of a route's options its plugins may change. */
export interface FastifyRoute {
  config?: object
  preHandler?: unknown
  handler(this: unknown, request: FastifyRequest, reply: FastifyReply): unknown
}

export type FastifyPreHandler<Request = FastifyRequest> = (
  request: Request,
  reply: FastifyReply,
  done: FastifyDone,
) => void

/** For `app.register`, of Fastify 5; it covers what it is registered in, prefixes and all. */
export type FastifyPlugin = (instance: FastifyInstance, options: object, done: FastifyDone) => void

/** What `idempotent(safe, options)` makes: a plugin, and a `preHandler` for one route. */
export type FastifyIdempotency = FastifyPreHandler & FastifyPlugin

/** For `app.post` and `app.route`. */
export type FastifyHandler<Request> = (request: Request, reply: FastifyReply) => Promise<void>
