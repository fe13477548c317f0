/**
 * Fastify 5.
 *
 * ```ts
 * app.register(rawBody)
 * app.post('/orders', idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body))))
 * app.register(async (routes) => {
 *   await routes.register(idempotent(safe, { mode: 'lease' }))
 *   routes.post('/legacy', handlerYouAlreadyHave)
 * })
 * ```
 */
import type { ServerResponse } from 'node:http'
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import type { Retrysafe } from '../retrysafe.js'
import { createAround } from './around.js'
import { createExchange, type Exchange, type HttpAttempt, type HttpCall, type Performed } from './exchange.js'
import { reasonOf } from './express-errors.js'
import { addBodyWatch, readFastifyBody } from './fastify-body.js'
import { answering, sendThrough, showHeaders } from './fastify-reply.js'
import type {
  FastifyDone,
  FastifyHandler,
  FastifyHooks,
  FastifyIdempotency,
  FastifyInstance,
  FastifyPlugin,
  FastifyReply,
  FastifyRequest,
} from './fastify-types.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import { checkReply, type Reply } from './reply.js'

export type { HttpAttempt } from './exchange.js'
export type {
  FastifyHandler,
  FastifyIdempotency,
  FastifyPlugin,
  FastifyReply,
  FastifyRequest,
} from './fastify-types.js'
export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'

/** What a handler that returns a reply is given. */
export type FastifyContext<Attempt, Request> = Attempt & {
  readonly request: Request
  /** What a parser left in `request.body`, else parsed JSON, else bytes. Nobody but your schema has checked its shape. */
  readonly body: Body
}

type Handler<Attempt, Request> = (context: FastifyContext<Attempt, Request>) => Reply | Promise<Reply>

/** Of Fastify's registry: the plugin belongs to the instance it is registered in, not to one of its own. */
const inPlace = { [Symbol.for('skip-override')]: true }

/**
 * Keeps the bytes of bodies while they are parsed, for routes that are declared in the same instance: numbers beyond 2^53 and repeated
 * members then count as they were sent (rule 15), and so does what a schema would coerce, add or remove. `app.register(rawBody)`, before those routes;
 * the plugin that `idempotent(safe, options)` makes brings it along. Costs a reference to each chunk up to the route's `bodyLimit`.
 */
export const rawBody: FastifyPlugin = Object.assign(
  (instance: FastifyInstance, _: object, done: FastifyDone) => {
    addBodyWatch(instance)
    done()
  },
  inPlace,
)

/**
 * Makes routes safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)`, it is the handler of a route: its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the writes that
 * the promise covers. Without one it is a plugin: it goes around the handlers of the instance it is registered in, of its
 * prefixes and of what is registered in it later; they find the attempt at `request.idempotency`, and what they send is kept. It is the last
 * `preHandler` of each route, so whatever refuses a request comes before it; of routes that were declared before it has loaded (without
 * `await app.register(…)`), it is the first. In transaction mode such a reply is held back until the commit, and a throw is never kept.
 *
 * Errors of ours are sent as `problem+json`, past `setErrorHandler`; what your own functions throw goes there, once. A reply that is
 * given again around a handler passes no `onSend` hook, for it has passed them all before it was kept.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Request extends FastifyRequest = FastifyRequest>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Request>,
): FastifyIdempotency
export function idempotent<Tx extends object, Request extends FastifyRequest = FastifyRequest>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Request>,
  handler: Handler<LeaseAttempt<Tx>, Request>,
): FastifyHandler<Request>
export function idempotent<Tx extends object, Request extends FastifyRequest = FastifyRequest>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Request>,
  handler: Handler<TransactionAttempt<Tx>, Request>,
): FastifyHandler<Request>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Request extends FastifyRequest = FastifyRequest>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Request>,
  handler: Handler<HttpAttempt<Tx>, Request>,
): FastifyHandler<Request>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Handler<never, FastifyRequest>,
): FastifyIdempotency | FastifyHandler<FastifyRequest> {
  if (handler === undefined) return around(createExchange<Tx>(safe, options, 'around'))
  return replying(createExchange<Tx>(safe, options, 'replies'), handler)
}

/** Handlers that return a reply. */
function replying<Tx>(
  exchange: Exchange<Tx>,
  handler: Handler<never, FastifyRequest>,
): FastifyHandler<FastifyRequest> {
  return async (request, reply) => {
    async function perform(attempt: HttpAttempt<Tx>, body: unknown): Promise<Performed> {
      const value = await handler({ request, body, ...attempt } as never)
      return { reply: checkReply(value, 'a handler'), whole: true, fault: 'none' }
    }

    const verdict = await exchange.run(callOf(request), perform)
    if (verdict.do === 'pass') reply.callNotFound()
    else sendThrough(reply, verdict.reply)
    // Fastify has it so: what a handler waits for after it has sent is the reply itself.
    return reply as never
  }
}

/** Handlers that exist and answer by themselves. */
function around<Tx>(exchange: Exchange<Tx>): FastifyIdempotency {
  const throws = new WeakMap<FastifyRequest, (error: unknown) => void>()
  const inRoute = Symbol('idempotent() stands behind the other hooks of the route')

  function enter(request: FastifyRequest, reply: FastifyReply, done: FastifyDone, seesThrows: boolean): void {
    const back = showHeaders(reply)
    let begun = false
    const handlers = createAround<Tx>(exchange.settings, reply.raw as ServerResponse, (attempt, threw) => {
      begun = true
      throws.set(request, threw)
      request.idempotency = attempt
      done()
      return () => seesThrows
    })

    function perform(attempt: HttpAttempt<Tx>, body: unknown): Promise<Performed> {
      // Fastify runs no handler behind a reply (of its `handlerTimeout`): nobody would ever give the key back.
      if (reply.sent) throw new Error('The reply was sent before the handler could run')
      return handlers.perform(attempt, body)
    }

    exchange
      .run(callOf(request), perform)
      .then((verdict) => {
        if (verdict.do === 'answer') reply.hijack()
        return handlers.carryOut(verdict) ? undefined : done
      })
      .then(
        (go) => go?.(),
        (error: unknown) => {
          handlers.giveUp()
          if (begun) back(reasonOf(error))
          else done(reasonOf(error) as Error)
        },
      )
  }

  function register(instance: FastifyInstance, done: FastifyDone): void {
    const app = instance as unknown as FastifyHooks
    if (!instance.hasRequestDecorator('idempotency')) instance.decorateRequest('idempotency')
    addBodyWatch(app)
    app.addHook('onRoute', (route) => {
      route.config = { ...route.config, [inRoute]: true }
      route.preHandler = [route.preHandler ?? [], last].flat()
      route.handler = answering(route.handler)
    })
    app.addHook('preHandler', (request, reply, next) => {
      if (request.is404 || inRoute in request.routeOptions.config) next()
      else enter(request, reply, next, true)
    })
    app.addHook('onError', (request, _reply, error, next) => {
      throws.get(request)?.(error)
      next()
    })
    done()
  }

  function last(request: FastifyRequest, reply: FastifyReply, done: FastifyDone): void {
    enter(request, reply, done, true)
  }

  function idempotency(first: FastifyInstance | FastifyRequest, second: object, done: FastifyDone): void {
    if ('addHook' in first) register(first, done)
    else enter(first, second as FastifyReply, done, false)
  }

  return Object.assign(idempotency, inPlace)
}

function callOf(request: FastifyRequest): HttpCall {
  return {
    method: request.method,
    target: request.originalUrl,
    rawHeaders: request.raw.rawHeaders,
    request,
    readBody: (limitBytes) => readFastifyBody(request, limitBytes),
  }
}
