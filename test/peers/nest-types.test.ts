/** Our restatement of Nest's types, held against the real ones: drift fails this build, not the user's. */
import type { CallHandler, DynamicModule, ExecutionContext, NestInterceptor, Type } from '@nestjs/common'
import { Module } from '@nestjs/common'
import type { Observable } from 'rxjs'
import { expectTypeOf, test } from 'vitest'
import { Attempt, type HttpAttempt, IdempotencyModule, Idempotent } from '../../dist/http/nest.js'
import type { NestContext, NestNext, NestObservable, ObservableClass } from '../../dist/http/nest-types.js'
import { retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'

const safe = retrysafe({
  store: memory(),
  mode: 'transaction',
  scope: (request: { headers: { authorization?: string } }) => request.headers.authorization ?? '',
})

test("Nest's interceptors, contexts and Observables fit what is used of them", () => {
  expectTypeOf<ExecutionContext>().toExtend<NestContext>()
  expectTypeOf<CallHandler>().toExtend<NestNext<Observable<unknown>>>()
  expectTypeOf<Observable<unknown>>().toExtend<NestObservable>()
  expectTypeOf<typeof Observable<unknown>>().toExtend<ObservableClass<Observable<unknown>>>()
  const intercept = (context: ExecutionContext, next: CallHandler) =>
    [context, next] satisfies [NestContext, NestNext]
  expectTypeOf(intercept).parameters.toEqualTypeOf<Parameters<NestInterceptor['intercept']>>()
})

test('the module fits where Nest takes modules', () => {
  expectTypeOf(IdempotencyModule.forRoot(safe)).toExtend<DynamicModule>()
  const later = IdempotencyModule.forRootAsync({ inject: ['STORE'], useFactory: async () => safe })
  expectTypeOf(later).toExtend<DynamicModule>()
  Module({ imports: [IdempotencyModule.forRoot(safe), later] })
})

test('decorators fit methods, controllers and parameters, whatever these are', () => {
  class Orders {
    constructor(readonly service: object) {}
    create(attempt: HttpAttempt<MemoryTx>) {
      return attempt.key
    }
  }
  expectTypeOf<typeof Orders>().toExtend<Type>()
  const descriptor = { value: Orders.prototype.create }
  Idempotent({ mode: 'lease' })(Orders.prototype, 'create', descriptor)
  Idempotent({ scope: (request: { user: string }) => request.user })(Orders)
  Attempt()(Orders.prototype, 'create', 0)
  const asParameter: ParameterDecorator = Attempt()
  expectTypeOf(asParameter).toBeFunction()
  // @ts-expect-error there is no such option
  const noOption = () => Idempotent({ retainSeconds: 1 })
  expectTypeOf(noOption).toBeFunction()
})
