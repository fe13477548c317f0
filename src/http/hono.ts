/**
 * Hono 4.
 *
 * ```ts
 * app.post('/orders', idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body))))
 * app.post('/legacy', idempotent(safe, { mode: 'lease' }), handlerYouAlreadyHave)
 * ```
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import type { Retrysafe } from '../retrysafe.js'
import { createExchange, type Exchange, type HttpAttempt, type HttpCall } from './exchange.js'
import { type Answered, carry } from './fetch-carry.js'
import { readHonoBody } from './hono-body.js'
import { answerIn, fixResponse, headersOf, putResponse } from './hono-context.js'
import type { HonoContext, HonoMiddleware } from './hono-types.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import type { Reply } from './reply.js'

export type { HonoContext, HonoMiddleware, HonoRequest, HonoVariables } from './hono-types.js'
export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'

/** What a handler that returns a reply is given. */
export type HonoHandlerContext<Attempt, Context> = Attempt & {
  readonly c: Context
  /** The fields of a form that was parsed before, else parsed JSON, else bytes. Nobody has checked its shape: validate it. */
  readonly body: Body
}

type Handler<Attempt, Context> = (
  context: HonoHandlerContext<Attempt, Context>,
) => Reply | Response | Promise<Reply | Response>

/**
 * Makes a route safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)` or a `Response` (`c.json()`): its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the
 * writes that the promise covers. Without one, the middleware goes around the handlers that follow; they find the attempt at
 * `c.get('idempotency')`, and what they answer is kept. In transaction mode an answer waits for the commit, and what `app.onError` has made of
 * a throw is sent, but never kept. A body that was read before through `c.req` counts by what was read.
 *
 * Costs no round trip to the store beyond the work's own in transaction mode; in lease mode one with `commit`, else two. Errors of ours are
 * answered as `problem+json` and never reach `app.onError`; what your own functions throw does, once.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Context extends HonoContext = HonoContext>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Context>,
): HonoMiddleware<Context>
export function idempotent<Tx extends object, Context extends HonoContext = HonoContext>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Context>,
  handler: Handler<LeaseAttempt<Tx>, Context>,
): HonoMiddleware<Context>
export function idempotent<Tx extends object, Context extends HonoContext = HonoContext>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Context>,
  handler: Handler<TransactionAttempt<Tx>, Context>,
): HonoMiddleware<Context>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Context extends HonoContext = HonoContext>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Context>,
  handler: Handler<HttpAttempt<Tx>, Context>,
): HonoMiddleware<Context>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Handler<never, HonoContext>,
): HonoMiddleware<HonoContext> {
  if (handler === undefined) {
    return mount(createExchange<Tx>(safe, options, 'around'), async (c, next, attempt) => {
      c.set('idempotency', attempt)
      await next()
      return answerIn(c)
    })
  }
  return mount(createExchange<Tx>(safe, options, 'replies'), async (c, _next, attempt, body) => {
    const answer = await handler({ c, body, ...(attempt as object) } as never)
    if (!(answer instanceof Response)) return { answer }
    c.res = answer
    return answerIn(c)
  })
}

type Run<Tx> = (
  c: HonoContext,
  next: () => Promise<void>,
  attempt: HttpAttempt<Tx>,
  body: unknown,
) => Promise<Answered>

function mount<Tx>(exchange: Exchange<Tx>, run: Run<Tx>): HonoMiddleware<HonoContext> {
  return async (c, next) => {
    const before = headersOf(c)
    let answered: Answered | undefined
    let isAtWork = false
    const carrying = carry(exchange, callOf(c), async (attempt, body) => {
      isAtWork = true
      try {
        answered = await run(c, next, attempt, body)
        return answered
      } finally {
        isAtWork = false
      }
    })
    const carried = await carrying.catch((error: unknown) => {
      // What the handler had answered, headers and cookies included, is not what the error handler adds to.
      if (answered !== undefined) putResponse(c, new Response(null), before)
      throw error
    })
    if (carried.do === 'pass') await next()
    else if (isAtWork) fixResponse(c, carried.response, before)
    else if (carried.do === 'answer') putResponse(c, carried.response, before)
    else putResponse(c, carried.response, answered?.answer instanceof Response ? undefined : headersOf(c))
    return undefined
  }
}

function callOf(c: HonoContext): HttpCall {
  const { pathname, search } = new URL(c.req.url)
  return {
    method: c.req.method,
    target: pathname + search,
    rawHeaders: [...c.req.raw.headers].flat(),
    request: c,
    readBody: (limitBytes) => readHonoBody(c.req, limitBytes),
  }
}
