/** Where a method of Nest stands: prefixes, versions, modules, controllers, and what an application needs to start. */
import { Controller, Get, Module, type NestInterceptor, Post, VersioningType } from '@nestjs/common'
import { of } from 'rxjs'
import { expect, test } from 'vitest'
import {
  Attempt,
  type HttpAttempt,
  IdempotencyModule,
  Idempotent,
  retrysafeToken,
} from '../../dist/http/nest.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { counted, inNest, method, orders, platforms, shown } from './nest-room.js'
import type { PlatformName } from './nest-site.js'

test.each(platforms)('prefix and version are part of the path that a key is for (%s)', async (platform) => {
  class Orders {
    first() {
      return { version: 1 }
    }
    second() {
      return { version: 2 }
    }
  }
  method(Orders, 'first', Post('orders'), versioned('1'), Idempotent())
  method(Orders, 'second', Post('orders'), versioned('2'), Idempotent())
  Controller()(Orders)
  const prepare = (app: {
    setGlobalPrefix(prefix: string): unknown
    enableVersioning(options: object): unknown
  }) => {
    app.setGlobalPrefix('api')
    app.enableVersioning({ type: VersioningType.URI })
  }
  await inNest(
    { platform, metadata: { controllers: [Orders] }, prepare: prepare as never },
    async ({ post }) => {
      expect(shown(await post('/api/v1/orders'))).toEqual({
        status: 201,
        body: '{"version":1}',
        replayed: false,
      })
      expect((await post('/api/v1/orders')).replayed).toBe(true)
      expect((await post('/api/v2/orders')).status).toBe(422)
      expect(shown(await post('/api/v2/orders', { key: 'other' }))).toMatchObject({ body: '{"version":2}' })
    },
  )
})

const versioned =
  (version: string): MethodDecorator =>
  (_target, _name, { value }) =>
    Reflect.defineMetadata('__version__', version, value as object)

test.each(platforms)(
  'one module serves the controllers of all, which may ask for its instance (%s)',
  async (platform) => {
    class Injected {
      constructor(readonly safe: object) {}
      create() {
        return { methods: typeof (this.safe as { run?: unknown }).run }
      }
    }
    Reflect.defineMetadata('self:paramtypes', [{ index: 0, param: retrysafeToken }], Injected)
    method(Injected, 'create', Post('injected'), Idempotent())
    Controller()(Injected)
    class Feature {}
    Module({ controllers: [Injected] })(Feature)
    const { run, runs } = counted((id) => ({ id }))
    await inNest(
      { platform, metadata: { imports: [Feature], controllers: [orders(run)] } },
      async ({ post }) => {
        expect(shown(await post('/injected'))).toMatchObject({ status: 201, body: '{"methods":"function"}' })
        expect((await post('/injected')).replayed).toBe(true)
        await post('/orders', { key: 'own' })
        expect((await post('/orders', { key: 'own' })).replayed).toBe(true)
        expect(runs()).toBe(1)
      },
    )
  },
)

test('an instance may be made of other providers', async () => {
  class Stores {}
  Module({ providers: [{ provide: 'STORE', useValue: memory() }], exports: ['STORE'] })(Stores)
  const imports = [
    IdempotencyModule.forRootAsync({
      imports: [Stores],
      inject: ['STORE'],
      useFactory: async (store) => retrysafe({ store, scope: 's', mode: 'transaction' }),
    }),
  ]
  const { run } = counted((id) => ({ id }))
  await inNest({ withModule: false, metadata: { imports, controllers: [orders(run)] } }, async ({ post }) => {
    expect((await post()).replayed).toBe(false)
    expect((await post()).replayed).toBe(true)
  })
})

test('without the module, or with options that do not fit, no application starts', async () => {
  const controllers = [orders(() => undefined)]
  await expect(
    inNest({ withModule: false, metadata: { controllers } }, async () => undefined),
  ).rejects.toThrow(/resolve dependencies/)
  const wrong = orders(() => undefined, Idempotent({ header: 'not a name' }))
  await expect(inNest({ metadata: { controllers: [wrong] } }, async () => undefined)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

test.each(platforms)(
  'on a controller it covers every method, and the options of a method go before (%s)',
  async (platform) => {
    const { run, runs } = counted((id) => ({ id }))
    class Orders {
      list() {
        return run()
      }
      create() {
        return run()
      }
      pay(attempt: HttpAttempt<MemoryTx>) {
        return attempt.commit(() => reply(202, { ...run(), key: attempt.key }))
      }
    }
    method(Orders, 'list', Get('orders'))
    method(Orders, 'create', Post('orders'))
    Attempt()(Orders.prototype, 'pay', 0)
    method(Orders, 'pay', Post('payments'), Idempotent({ mode: 'lease', required: false }))
    Controller()(Orders)
    Idempotent({ header: 'X-Key' })(Orders)
    await inNest({ platform, metadata: { controllers: [Orders] } }, async ({ post }) => {
      const headers = { 'x-key': 'k' }
      expect((await post('/orders')).status).toBe(400)
      expect(shown(await post('/orders', { headers }))).toEqual({
        status: 201,
        body: '{"id":1}',
        replayed: false,
      })
      expect((await post('/orders', { headers })).replayed).toBe(true)
      const paid = await post('/payments', { headers: { 'x-key': 'p' } })
      expect(shown(paid)).toEqual({ status: 202, body: '{"id":2,"key":"p"}', replayed: false })
      expect((await post('/payments', { headers: { 'x-key': 'p' } })).replayed).toBe(true)
      // Who asks for the attempt is given one, without a key too.
      expect((await post('/payments')).status).toBe(202)
      await post('/orders', { method: 'GET', headers })
      expect(runs()).toBe(4)
    })
  },
)

test.each(platforms)(
  'an existing method finds the attempt at its request, and writes through it (%s)',
  async (platform) => {
    const seen: unknown[] = []
    const controllers = [
      orders((_body, request) => {
        const { idempotency } = request as { idempotency?: HttpAttempt<MemoryTx> }
        seen.push(idempotency?.key, typeof idempotency?.tx)
        return 'done'
      }),
    ]
    await inNest({ platform, metadata: { controllers } }, async ({ post }) => {
      expect(shown(await post())).toEqual({ status: 201, body: 'done', replayed: false })
      expect(seen).toEqual(['k', 'object'])
    })
  },
)

test.each(platforms)('a controller that lives for one request is covered as well (%s)', async (platform) => {
  const { run, runs } = counted((id) => ({ id }))
  const Orders = orders(run)
  Controller({ scope: 2 })(Orders)
  await inNest({ platform, metadata: { controllers: [Orders] } }, async ({ post }) => {
    await post('/')
    const paths = ['/orders', '/orders']
    for (const path of paths) expect((await post(path)).status).toBe(201)
    expect(runs()).toBe(1)
  })
})

test.each(platforms)(
  'where no bytes are kept, the parsed body counts (%s)',
  async (platform: PlatformName) => {
    const { run, runs } = counted((id) => ({ id }))
    await inNest({ platform, rawBody: false, metadata: { controllers: [orders(run)] } }, async ({ post }) => {
      const type = { 'content-type': 'application/json' }
      await post('/orders', { body: '{"a":1,"b":2}', headers: type })
      expect((await post('/orders', { body: '{ "b": 2, "a": 1.0 }', headers: type })).replayed).toBe(true)
      expect((await post('/orders', { body: '{"a":2}', headers: type })).status).toBe(422)
      expect(runs()).toBe(1)
    })
  },
)

test('where there is no HTTP, a decorated method is an error rather than unprotected', async () => {
  const safe = retrysafe({ store: memory(), scope: 's', mode: 'transaction' })
  const { providers } = IdempotencyModule.forRoot(safe)
  const { useClass: Interceptor } = providers.find(({ provide }) => provide === 'APP_INTERCEPTOR')
  const interceptor: NestInterceptor = new Interceptor(safe)
  const contextOf = (controller: { readonly prototype: object }) =>
    ({
      getType: () => 'ws',
      getClass: () => controller,
      getHandler: () => Reflect.get(controller.prototype, 'create'),
    }) as never
  class Plain {
    create() {
      return 1
    }
  }
  const next = { handle: () => of('passed') }
  expect(interceptor.intercept(contextOf(Plain), next)).toBeDefined()
  const decorated = orders(() => 1)
  expect(() => interceptor.intercept(contextOf(decorated), next)).toThrow(/HTTP/)
  await safe.close()
})
