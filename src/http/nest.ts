/**
 * NestJS 11, on Express and on Fastify.
 *
 * ```ts
 * @Module({ imports: [IdempotencyModule.forRoot(safe)], controllers: [Orders] })
 *
 * @Post()
 * @Idempotent()
 * create(@Attempt() { tx }: HttpAttempt<Tx>, @Body() order: Order) { return createOrder(tx, order) }
 * ```
 */
import { fail } from '../errors.js'
import type { Retrysafe } from '../retrysafe.js'
import { createAround } from './around.js'
import { createExchange, type Exchange } from './exchange.js'
import { asksForAttempt, inject, mark, optionsFor, parameter } from './nest-metadata.js'
import { behindAnswer, watch } from './nest-observable.js'
import { platformOf } from './nest-platform.js'
import type {
  NestContext,
  NestDecorator,
  NestDynamicModule,
  NestModuleOptions,
  NestNext,
  NestObservable,
  NestParameterDecorator,
  NestRequest,
} from './nest-types.js'
import type { HttpOptions } from './options.js'
import { isOfOurs } from './user-code.js'

export type { HttpAttempt } from './exchange.js'
export type {
  NestDecorator,
  NestDynamicModule,
  NestModuleOptions,
  NestParameterDecorator,
  NestRequest,
} from './nest-types.js'
export type { HttpOptions } from './options.js'

/** For `@Inject(retrysafeToken)`: the instance that the module was given. */
export const retrysafeToken = Symbol.for('retrysafe')

/** Of Nest's registry: set on requests whose pipes have refused them, so that their handler never ran. */
const refusedByPipes = Symbol.for('nestjs:rejected-by-pipes')

/** Requests that one of our interceptors is around. */
const entered = new WeakSet<object>()

/**
 * Makes methods of controllers safe to retry: each key's work takes effect once, and its reply is given again to every retry. On a
 * controller it covers every method (of GET none is), and a method's own options go before.
 *
 * What Nest answers is kept, whatever the method returns: a value (with `@HttpCode`, `@Header`, `@Redirect`), an Observable, a `StreamableFile`, what it writes to `@Res()`,
 * or a `reply(status, body)`, which is sent as it is. Writes that the promise covers go through the attempt ({@link Attempt}): its `tx` (mode
 * `transaction`) or `commit` (mode `lease`, with a `reply`). Guards run before: whom they refuse costs no key and sees no replay. What a pipe refuses
 * frees the key. A throw goes to the exception filters as ever; what they make of it is not kept in transaction mode.
 *
 * Errors of ours are sent as `problem+json`, past the filters; what `scope` and the like throw goes there. An interceptor around ours (a
 * global one, of a module that is imported before) sees undefined where the handler did not run.
 *
 * @throws `OPTION_INVALID` while the application starts, for options that do not fit; Nest itself reports where the module is missing
 */
export function Idempotent<Request = NestRequest>(options: HttpOptions<Request> = {}): NestDecorator {
  class CheckedInterceptor extends IdempotencyInterceptor {
    constructor(safe: Retrysafe<object>) {
      super(safe)
      createExchange(safe, options, 'around')
    }
  }
  inject(CheckedInterceptor, retrysafeToken)
  return (target: object, _name?: string | symbol, method?: { value?: unknown }) => {
    mark((method?.value ?? target) as object, options, CheckedInterceptor)
  }
}

/**
 * The attempt, for a parameter of the method: `create(@Attempt() { tx, key }: HttpAttempt<Tx>)`. A method that has it is always given one where its HTTP
 * method is covered, for a request without a key under a key drawn for it. It is found at `request.idempotency` as well.
 */
export function Attempt(): NestParameterDecorator {
  return parameter((context) => context.switchToHttp().getRequest().idempotency)
}

// Classes, because Nest makes modules and interceptors with `new` and knows them by their constructor.

/** The module that makes `@Idempotent()` work; imported once, in the root module, for all others. */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows modules by their class
export class IdempotencyModule {
  /** For an instance that is there: `imports: [IdempotencyModule.forRoot(safe)]`. It is yours to close. */
  static forRoot<Tx extends object>(safe: Retrysafe<Tx>): NestDynamicModule {
    return moduleOf({ provide: retrysafeToken, useValue: safe })
  }

  /** For an instance that is made of other providers: `forRootAsync({ inject: [Pool], useFactory: (pool) => retrysafe({ store: postgres(pool), … }) })`. */
  static forRootAsync({
    imports = [],
    inject: needed = [],
    useFactory,
  }: NestModuleOptions): NestDynamicModule {
    return {
      ...moduleOf({ provide: retrysafeToken, useFactory, inject: [...needed] }),
      imports: [...imports],
    }
  }
}

function moduleOf(provider: object): NestDynamicModule {
  inject(IdempotencyInterceptor, retrysafeToken)
  // As a global one it stands around those of controllers and methods.
  const global = { provide: 'APP_INTERCEPTOR', useClass: IdempotencyInterceptor }
  return { module: IdempotencyModule, global: true, providers: [provider, global], exports: [retrysafeToken] }
}

class IdempotencyInterceptor {
  readonly #exchangeOf: (context: NestContext) => Exchange<object> | undefined

  constructor(safe: Retrysafe<object>) {
    this.#exchangeOf = exchangesOf(safe)
  }

  intercept<Observable extends NestObservable>(
    context: NestContext,
    next: NestNext<Observable>,
  ): Observable | Promise<Observable> {
    const exchange = this.#exchangeOf(context)
    if (exchange === undefined) return next.handle()
    const request = context.switchToHttp().getRequest()
    if (entered.has(request)) return next.handle()
    entered.add(request)
    return around(exchange, context, next)
  }
}

/** One exchange for each method that is decorated. */
function exchangesOf(safe: Retrysafe<object>): (context: NestContext) => Exchange<object> | undefined {
  // By controller as well: two may have inherited one method.
  const exchanges = new WeakMap<object, WeakMap<object, Exchange<object>>>()

  function make(context: NestContext): Exchange<object> | undefined {
    const options = optionsFor(context)
    if (options === undefined) return undefined
    if (context.getType() !== 'http') throw fail('OPTION_INVALID', { detail: '@Idempotent() is for HTTP' })
    const exchange = createExchange<object>(safe, options, asksForAttempt(context) ? 'replies' : 'around')
    const ofController = exchanges.get(context.getClass()) ?? new WeakMap()
    exchanges.set(context.getClass(), ofController.set(context.getHandler(), exchange))
    return exchange
  }

  return (context) => exchanges.get(context.getClass())?.get(context.getHandler()) ?? make(context)
}

function around<Observable extends NestObservable>(
  exchange: Exchange<object>,
  context: NestContext,
  next: NestNext<Observable>,
): Promise<Observable> {
  const request = context.switchToHttp().getRequest()
  const platform = platformOf(context)
  return new Promise((resolve, reject) => {
    let begun = false
    let breakOff: (error: unknown) => void = () => undefined
    const brokenOff = new Promise<never>((_, broken) => {
      breakOff = broken
    })
    const handlers = createAround<object>(exchange.settings, platform.raw, (attempt, threw) => {
      begun = true
      request.idempotency = attempt
      const toldOf = (error: unknown) => {
        const isOurs = isOfOurs(error)
        if (isOurs) breakOff(error)
        else threw(error, refusedByPipes in request)
        return isOurs
      }
      const { observable, isSure } = watch(next.handle(), { ...platform, threw: toldOf })
      resolve(observable)
      return isSure
    })
    exchange
      .run(platform.call, (attempt, body) => Promise.race([handlers.perform(attempt, body), brokenOff]))
      .then((verdict) => {
        if (verdict.do === 'answer') platform.hijack()
        if (!handlers.carryOut(verdict)) resolve(next.handle())
        else if (!begun) resolve(behindAnswer(next.handle(), platform))
      })
      .catch((error: unknown) => {
        handlers.giveUp()
        if (begun) platform.giveError(error)
        else reject(error)
      })
  })
}
