/**
 * AWS Lambda behind API Gateway: REST APIs and HTTP APIs, payload formats 1.0 and 2.0, and function URLs.
 *
 * ```ts
 * export const handler = idempotent(safe, {}, async ({ tx, body }) => reply(201, await createOrder(tx, body)))
 * export const legacy = idempotent(safe, { mode: 'lease' })(handlerYouAlreadyHave)
 * ```
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import { fail } from '../errors.js'
import type { Retrysafe } from '../retrysafe.js'
import { createExchange, type Exchange, type HttpAttempt, type Perform } from './exchange.js'
import { callOf } from './lambda-event.js'
import { replyOf, resultOf } from './lambda-result.js'
import type { LambdaContext, LambdaEvent, LambdaResult } from './lambda-types.js'
import type { Body, HttpOptions, LeaseOptions, TransactionOptions } from './options.js'
import { checkReply, type Reply } from './reply.js'

export type {
  LambdaContext,
  LambdaEvent,
  LambdaEventV1,
  LambdaEventV2,
  LambdaResult,
} from './lambda-types.js'
export type { HttpOptions, LeaseOptions, TransactionOptions } from './options.js'

/** What a handler that returns a reply is given. */
export type LambdaHandlerContext<Attempt, Event> = Attempt & {
  readonly event: Event
  /** Parsed JSON, else bytes. Nobody has checked its shape: validate it. */
  readonly body: Body
}

type Handler<Attempt, Event> = (context: LambdaHandlerContext<Attempt, Event>) => Reply | Promise<Reply>

/** What `idempotent` makes of a handler that returns a reply; Lambda calls it. */
export type LambdaFunction<Event> = (event: Event, context?: LambdaContext) => Promise<LambdaResult>

const attempts = new WeakMap<object, unknown>()

/** The attempt of an event that came through `idempotent(safe, options)(handler)`; undefined where it passed unprotected. */
export function idempotencyOf<Tx = unknown>(event: object): HttpAttempt<Tx> | undefined {
  return attempts.get(event) as HttpAttempt<Tx> | undefined
}

/**
 * Makes a function safe to retry: each key's work takes effect once, and its reply is given again to every retry.
 *
 * With a handler, which returns `reply(status, body)`: its `tx` (mode `transaction`) or `commit` (mode `lease`) carries the writes that the promise
 * covers. Without one it answers a function to put around a handler that exists, which finds the attempt by {@link idempotencyOf} and
 * returns a result of the event's format. Handlers return promises: one that takes a callback is refused. Its answer is given when the outcome
 * is stored and nothing of ours is under way any more, so that Lambda may freeze the process. Work ends at `workTimeoutMs`, or half a second
 * before the invocation's own limit, whichever is earlier.
 *
 * Errors of ours are answered as `problem+json`; what your own functions throw is thrown on, and fails the invocation.
 *
 * @throws `OPTION_INVALID` at once for options that do not fit
 */
export function idempotent<Tx extends object, Event extends LambdaEvent = LambdaEvent>(
  safe: Retrysafe<Tx>,
  options?: HttpOptions<Event>,
): <Own extends Event, Rest extends unknown[], Result>(
  handler: (event: Own, ...rest: Rest) => Result,
) => (event: Own, ...rest: Rest) => Promise<LambdaResult | Extract<Awaited<Result>, object | string>>
export function idempotent<Tx extends object, Event extends LambdaEvent = LambdaEvent>(
  safe: Retrysafe<Tx>,
  options: LeaseOptions<Event>,
  handler: Handler<LeaseAttempt<Tx>, Event>,
): LambdaFunction<Event>
export function idempotent<Tx extends object, Event extends LambdaEvent = LambdaEvent>(
  safe: Retrysafe<Tx>,
  options: TransactionOptions<Event>,
  handler: Handler<TransactionAttempt<Tx>, Event>,
): LambdaFunction<Event>
/** Without a mode in the options the instance's holds, which types do not know: `tx` or `commit` is there, as it says. */
export function idempotent<Tx extends object, Event extends LambdaEvent = LambdaEvent>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<Event>,
  handler: Handler<HttpAttempt<Tx>, Event>,
): LambdaFunction<Event>
export function idempotent<Tx extends object>(
  safe: Retrysafe<Tx>,
  options: HttpOptions<never> = {},
  handler?: Handler<never, LambdaEvent>,
): unknown {
  if (handler !== undefined) return replying(createExchange<Tx>(safe, options, 'replies'), handler)
  const exchange = createExchange<Tx>(safe, options, 'around')
  return (existing: Existing) => around(exchange, existing)
}

type Existing = (event: LambdaEvent, ...rest: unknown[]) => unknown

function replying<Tx>(exchange: Exchange<Tx>, handler: Handler<never, LambdaEvent>): Existing {
  return (event, context) =>
    carry(exchange, event, context, refuseMethod, async (attempt, body) => {
      const value = await handler({ event, body, ...attempt } as never)
      return { reply: checkReply(value, 'a handler'), whole: true, fault: 'none' }
    })
}

function around<Tx>(exchange: Exchange<Tx>, handler: Existing): Existing {
  if (handler.length > 2) {
    throw fail('OPTION_INVALID', {
      detail: 'a handler that takes a callback cannot be waited for: return a promise',
    })
  }
  return (event, ...rest) =>
    carry(
      exchange,
      event,
      rest[0],
      () => handler(event, ...rest),
      async (attempt) => {
        attempts.set(event, attempt)
        return { reply: replyOf(await handler(event, ...rest), event), whole: true, fault: 'none' }
      },
    )
}

async function carry<Tx>(
  exchange: Exchange<Tx>,
  event: LambdaEvent,
  context: unknown,
  pass: () => unknown,
  perform: Perform<Tx>,
): Promise<unknown> {
  const verdict = await exchange.run(callOf(event, context), perform)
  return verdict.do === 'pass' ? pass() : resultOf(verdict.reply, event)
}

/** A method that is not covered has no handler here: the function is ours alone. */
function refuseMethod(): LambdaResult {
  return { statusCode: 405, headers: {}, body: '', isBase64Encoded: false }
}
