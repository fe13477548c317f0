/**
 * Express 4 and 5.
 *
 * ```ts
 * app.use(express.json({ verify: rawBody }))
 * app.post('/orders', idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body))))
 * app.post('/legacy', idempotent(safe, { mode: 'lease' }), handlerYouAlreadyHave)
 * ```
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import type { Retrysafe } from '../retrysafe.js'
import { createAround } from './around.js'
import { createExchange, type Exchange, type HttpAttempt, type HttpCall, type Performed } from './exchange.js'
import { readExpressBody } from './express-body.js'
import { reasonOf, watchRoute } from './express-errors.js'
import type { ExpressMiddleware, ExpressRequest, RequestExtras } from './express-types.js'
import { sendReply } from './node.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import { checkReply, type Reply } from './reply.js'

export { rawBody } from './express-body.js'
export type { ExpressMiddleware, ExpressNext, ExpressRequest } from './express-types.js'
export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
export { serve } from './serve.js'

/** What a handler that returns a reply is given. */
export type ExpressContext<Attempt, Request> = Attempt & {
  readonly req: Request
  /** What a parser left in `req.body`, else parsed JSON, else bytes. Nobody has checked its shape: validate it. */
  readonly body: Body
}

type Handler<Attempt, Request> = (context: ExpressContext<Attempt, Request>) => Reply | Promise<Reply>

/**
 * Makes a route safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)`: its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the writes that the promise
 * covers. Without one, the middleware goes around the handlers that follow; they find the attempt at `req.idempotency`, and what
 * they send is kept. In transaction mode such a reply is held back until the commit, a throw is never kept, and where the
 * middleware cannot see throws (mounted with `app.use`, or in a route with an error handler of its own) no status from 400 up is.
 * A complete answer ends the work (rule 24): what is thrown, set or sent behind it changes neither reply, record nor writes. A throw in
 * the middle of an answer is a failure, whoever ends the answer. A handler that ends its request (`req.destroy()`) has given up: at once in
 * transaction mode, after `leaseMs` in lease mode; one that ends `req.socket` in lease mode holds the key until it answers or `workTimeoutMs` is over.
 *
 * Costs no round trip to the store beyond the work's own in transaction mode; in lease mode one with `commit`, else two. Errors of ours are sent as `problem+json`; what your
 * own functions throw goes to Express's error handler, once.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Request extends ExpressRequest = ExpressRequest>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Request>,
): ExpressMiddleware<Request>
export function idempotent<Tx extends object, Request extends ExpressRequest = ExpressRequest>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Request>,
  handler: Handler<LeaseAttempt<Tx>, Request>,
): ExpressMiddleware<Request>
export function idempotent<Tx extends object, Request extends ExpressRequest = ExpressRequest>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Request>,
  handler: Handler<TransactionAttempt<Tx>, Request>,
): ExpressMiddleware<Request>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Request extends ExpressRequest = ExpressRequest>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Request>,
  handler: Handler<HttpAttempt<Tx>, Request>,
): ExpressMiddleware<Request>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Handler<never, ExpressRequest>,
): ExpressMiddleware<ExpressRequest> {
  if (handler === undefined) return around(createExchange<Tx>(safe, options, 'around'))
  return replying(createExchange<Tx>(safe, options, 'replies'), handler)
}

/** Handlers that return a reply. */
function replying<Tx>(
  exchange: Exchange<Tx>,
  handler: Handler<never, ExpressRequest>,
): ExpressMiddleware<ExpressRequest> {
  return (req, res, next) => {
    async function perform(attempt: HttpAttempt<Tx>, body: unknown): Promise<Performed> {
      const value = await handler({ req, body, ...attempt } as never)
      return { reply: checkReply(value, 'a handler'), whole: true, fault: 'none' }
    }

    exchange
      .run(callOf(req), perform)
      .then((verdict) => {
        if (verdict.do === 'pass') return next
        sendReply(res, verdict.reply)
        return undefined
      })
      // `next` is called outside of what is caught here: what it throws is not ours to report a second time.
      .then(
        (go) => go?.(),
        (error: unknown) => next(reasonOf(error)),
      )
  }
}

/** Handlers that exist and answer by themselves. */
function around<Tx>(exchange: Exchange<Tx>): ExpressMiddleware<ExpressRequest> {
  return function idempotency(req, res, next) {
    const handlers = createAround<Tx>(exchange.settings, res, (attempt, threw) => {
      const seesThrows = watchRoute(req, idempotency, threw)
      Object.assign(req, { idempotency: attempt })
      next()
      return seesThrows
    })
    exchange
      .run(callOf(req), handlers.perform)
      .then((verdict) => (handlers.carryOut(verdict) ? undefined : next))
      .then(
        (go) => go?.(),
        (error: unknown) => {
          handlers.giveUp()
          next(reasonOf(error))
        },
      )
  }
}

function callOf(req: ExpressRequest & RequestExtras): HttpCall {
  return {
    method: req.method ?? '',
    target: req.originalUrl,
    rawHeaders: req.rawHeaders,
    request: req,
    readBody: (limitBytes) => readExpressBody(req, limitBytes),
  }
}
