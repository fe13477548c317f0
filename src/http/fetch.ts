/**
 * Any server whose handlers take a `Request` and return a `Response`: Next.js route handlers, Hono, Bun, Deno, workers on Node.
 *
 * ```ts
 * export const POST = idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body)))
 * export const PUT = idempotent(safe, { mode: 'lease' })(handlerYouAlreadyHave)
 * ```
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import type { Retrysafe } from '../retrysafe.js'
import { createExchange, type Exchange, type HttpAttempt, type HttpCall } from './exchange.js'
import { readRequestBody } from './fetch-body.js'
import { type Answered, carry } from './fetch-carry.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import type { Reply } from './reply.js'
import { thrownResponse } from './thrown-response.js'

export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'

/** A handler of the fetch kind; what a framework passes behind the request is passed on. */
export type FetchHandler<Rest extends unknown[] = [], Own extends Request = Request> = (
  request: Own,
  ...rest: Rest
) => Response | Promise<Response>

/** What a handler that returns a reply is given. */
export type FetchContext<Attempt, Own extends Request = Request> = Attempt & {
  readonly request: Own
  /** Parsed JSON, else bytes. Nobody has checked its shape: validate it. */
  readonly body: Body
}

type Replying<Attempt, Own extends Request> = (
  context: FetchContext<Attempt, Own>,
) => Reply | Response | Promise<Reply | Response>

const attempts = new WeakMap<Request, unknown>()

/** The attempt of a request that came through `idempotent(safe, options)(handler)`; undefined where it passed unprotected. */
export function idempotencyOf<Tx = unknown>(request: Request): HttpAttempt<Tx> | undefined {
  return attempts.get(request) as HttpAttempt<Tx> | undefined
}

/**
 * Makes a handler safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)` or a `Response`: its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the writes that
 * the promise covers. Without one it answers a function to put around a handler that exists, which finds the attempt by
 * {@link idempotencyOf}. Errors of ours are answered as `problem+json`; what your own functions throw is thrown on.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Own extends Request = Request>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Own>,
): <Sent extends Own, Rest extends unknown[]>(
  handler: FetchHandler<Rest, Sent>,
) => (request: Sent, ...rest: Rest) => Promise<Response>
export function idempotent<Tx extends object, Own extends Request = Request>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Own>,
  handler: Replying<LeaseAttempt<Tx>, Own>,
): (request: Own) => Promise<Response>
export function idempotent<Tx extends object, Own extends Request = Request>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Own>,
  handler: Replying<TransactionAttempt<Tx>, Own>,
): (request: Own) => Promise<Response>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Own extends Request = Request>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Own>,
  handler: Replying<HttpAttempt<Tx>, Own>,
): (request: Own) => Promise<Response>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Replying<never, Request>,
): unknown {
  if (handler !== undefined) return replying(createExchange<Tx>(safe, options, 'replies'), handler)
  const exchange = createExchange<Tx>(safe, options, 'around')
  return <Rest extends unknown[]>(existing: FetchHandler<Rest>) => around(exchange, existing)
}

function replying<Tx>(exchange: Exchange<Tx>, handler: Replying<never, Request>) {
  return async (request: Request): Promise<Response> => {
    const carried = await carry(exchange, callOf(request), (attempt, body) =>
      answerOf(async () => handler({ request, body, ...(attempt as object) } as never)),
    )
    return carried.do === 'pass' ? refuseMethod() : carried.response
  }
}

function around<Tx, Rest extends unknown[]>(exchange: Exchange<Tx>, handler: FetchHandler<Rest>) {
  return async (request: Request, ...rest: Rest): Promise<Response> => {
    const carried = await carry(exchange, callOf(request), (attempt) => {
      attempts.set(request, attempt)
      return answerOf(async () => handler(request, ...rest))
    })
    return carried.do === 'pass' ? handler(request, ...rest) : carried.response
  }
}

/** Some frameworks throw a response where others return one. */
async function answerOf(run: () => Promise<Reply | Response>): Promise<Answered> {
  try {
    return { answer: await run() }
  } catch (error) {
    const answer = thrownResponse(error)
    if (answer === undefined) throw error
    // A redirect that is thrown is an answer like one that is returned; a refusal is what became of a failure.
    return answer.status < 400 ? { answer } : { answer, error }
  }
}

/** A method that is not covered has no handler here: the route is ours alone. */
function refuseMethod(): Response {
  return new Response(null, { status: 405 })
}

function callOf(request: Request): HttpCall {
  const { pathname, search } = new URL(request.url)
  return {
    method: request.method,
    target: pathname + search,
    rawHeaders: [...request.headers].flat(),
    request,
    readBody: (limitBytes) => readRequestBody(request, limitBytes),
  }
}
