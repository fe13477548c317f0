/**
 * Koa 3.
 *
 * ```ts
 * router.post('/orders', idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body))))
 * router.post('/legacy', idempotent(safe, { mode: 'lease' }), handlerYouAlreadyHave)
 * ```
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import type { StoredReply } from '../outcome.js'
import type { Retrysafe } from '../retrysafe.js'
import { createAround } from './around.js'
import { createExchange, type Exchange, type HttpAttempt, type HttpCall, type Performed } from './exchange.js'
import { readExpressBody } from './express-body.js'
import { reasonOf } from './express-errors.js'
import type { KoaContext, KoaMiddleware } from './koa-types.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import { createPatches } from './patches.js'
import { checkReply, type Reply } from './reply.js'

export type { HttpAttempt } from './exchange.js'
export type { KoaContext, KoaMiddleware } from './koa-types.js'
export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'

/** What a handler that returns a reply is given. */
export type KoaHandlerContext<Attempt, Context> = Attempt & {
  readonly ctx: Context
  /** What a parser left in `ctx.request.body`, else parsed JSON, else bytes. Nobody has checked its shape: validate it. */
  readonly body: Body
}

type Handler<Attempt, Context> = (context: KoaHandlerContext<Attempt, Context>) => Reply | Promise<Reply>

/**
 * Makes a route safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)`: its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the writes that the promise
 * covers. Without one, the middleware goes around what follows; handlers find the attempt at `ctx.state.idempotency`, and what Koa sends for them
 * is kept: the body as the middleware before us has left it (compressed, say), or what was written to `ctx.res`. In transaction mode it is
 * held back until the commit, and a throw is never kept, whoever makes an answer of it. A replay goes to `ctx.res` as it was kept.
 *
 * Errors of ours are sent as `problem+json`, past error handlers; what your own functions throw goes to them, once.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Context extends KoaContext = KoaContext>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Context>,
): KoaMiddleware<Context>
export function idempotent<Tx extends object, Context extends KoaContext = KoaContext>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Context>,
  handler: Handler<LeaseAttempt<Tx>, Context>,
): KoaMiddleware<Context>
export function idempotent<Tx extends object, Context extends KoaContext = KoaContext>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Context>,
  handler: Handler<TransactionAttempt<Tx>, Context>,
): KoaMiddleware<Context>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Context extends KoaContext = KoaContext>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Context>,
  handler: Handler<HttpAttempt<Tx>, Context>,
): KoaMiddleware<Context>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Handler<never, KoaContext>,
): KoaMiddleware<KoaContext> {
  if (handler === undefined) return around(createExchange<Tx>(safe, options, 'around'))
  return replying(createExchange<Tx>(safe, options, 'replies'), handler)
}

/** Handlers that return a reply. */
function replying<Tx>(
  exchange: Exchange<Tx>,
  handler: Handler<never, KoaContext>,
): KoaMiddleware<KoaContext> {
  return async (ctx, next) => {
    async function perform(attempt: HttpAttempt<Tx>, body: unknown): Promise<Performed> {
      const value = await handler({ ctx, body, ...attempt } as never)
      return { reply: checkReply(value, 'a handler'), whole: true, fault: 'none' }
    }

    const verdict = await exchange.run(callOf(ctx), perform)
    if (verdict.do === 'pass') await next()
    else putReply(ctx, verdict.reply)
  }
}

/** Sent by Koa, so that the middleware before us does its work on a replay too. */
function putReply(ctx: KoaContext, { status, headers, body }: StoredReply): void {
  // First the body: without one Koa would take the headers away that describe it, and choose a status of its own.
  ctx.body = body.length === 0 ? null : Buffer.from(body)
  ctx.status = status
  for (const [name] of headers) {
    const lines = headers.filter(([other]) => other.toLowerCase() === name.toLowerCase())
    const values = lines.map(([, value]) => value)
    ctx.set(name, values.length > 1 ? values : (values[0] ?? ''))
  }
}

/** Middleware and handlers that exist and answer by themselves. */
function around<Tx>(exchange: Exchange<Tx>): KoaMiddleware<KoaContext> {
  // Koa answers when all middleware has returned: so we return as what follows us does, and the work ends later, with the answer.
  return (ctx, next) =>
    new Promise((resolve, reject) => {
      let hasReturned = false
      const handlers = createAround<Tx>(exchange.settings, ctx.res, (attempt, threw) => {
        const stop = watchAnswer(ctx, threw)
        ctx.state.idempotency = attempt
        goOn(threw)
        return stop
      })

      function goOn(threw: (error: unknown) => void): void {
        next()
          .catch((error: unknown) => {
            threw(error)
            throw reasonOf(error)
          })
          .finally(() => {
            hasReturned = true
          })
          .then(() => resolve(), reject)
      }

      exchange.run(callOf(ctx), handlers.perform).then(
        (verdict) => {
          if (verdict.do === 'answer') ctx.respond = false
          if (handlers.carryOut(verdict)) resolve()
          else goOn(() => undefined)
        },
        (error: unknown) => {
          handlers.giveUp()
          // The middleware before us has returned as well: what is left is Koa.
          if (hasReturned) ctx.onerror(reasonOf(error) as Error)
          else reject(reasonOf(error))
        },
      )
    })
}

/** Hears of all that no middleware answers, and of what streams throw while they are sent; and has Koa answer a client that has left. */
function watchAnswer(ctx: KoaContext, threw: (error: unknown) => void): () => boolean {
  const patches = createPatches(ctx)
  const { onerror } = ctx
  patches.replace('onerror', (error: unknown) => {
    // Koa passes this function as a callback that may have no error to tell of.
    if (error !== undefined && error !== null) threw(error)
    onerror.call(ctx, error as Error)
  })
  // Without it Koa would end such an answer without its body, and that would be kept.
  patches.mask('writable', () => !ctx.res.writableEnded)
  return () => {
    patches.undo()
    return true
  }
}

function callOf(ctx: KoaContext): HttpCall {
  const { method, originalUrl, req, request } = ctx
  return {
    method,
    target: originalUrl,
    rawHeaders: req.rawHeaders,
    request: ctx,
    readBody: (limitBytes) => {
      const { rawBody } = request
      const kept = typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody
      return readExpressBody(req, limitBytes, { ...filesOf(ctx), body: request.body, rawBody: kept })
    },
  }
}

/** What `@koa/multer` has left. */
function filesOf(ctx: object): { readonly file?: unknown; readonly files?: unknown } {
  const { file, files } = ctx as { readonly file?: unknown; readonly files?: unknown }
  return { file, files }
}
