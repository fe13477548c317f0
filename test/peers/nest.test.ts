/** What is special in Nest: what its decorators make of a method, and who stands before and behind it. */
import {
  BadRequestException,
  Body,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  HttpException,
  Module,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Redirect,
  Req,
  Res,
  StreamableFile,
  UseFilters,
  UseGuards,
  UsePipes,
  VersioningType,
} from '@nestjs/common'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import { defer, from, of, throwError, timer } from 'rxjs'
import { map } from 'rxjs/operators'
import { expect, test } from 'vitest'
import {
  Attempt,
  type HttpAttempt,
  IdempotencyModule,
  Idempotent,
  type NestDecorator,
  retrysafeToken,
} from '../../dist/http/nest.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { everywhere, inNest, method, platforms, shown } from './nest-room.js'
import type { PlatformName } from './nest-site.js'

type Response2 = Response & FastifyReply

/** A controller of one method, `POST /orders`. */
function orders(
  run: (body: unknown, request: object, response: Response2) => unknown,
  ...decorators: (MethodDecorator | NestDecorator)[]
) {
  class Orders {
    create(body: unknown, request: object, response: Response2) {
      return run(body, request, response)
    }
  }
  Body()(Orders.prototype, 'create', 0)
  Req()(Orders.prototype, 'create', 1)
  Res({ passthrough: true })(Orders.prototype, 'create', 2)
  method(Orders, 'create', Post('orders'), Idempotent(), ...decorators)
  Controller()(Orders)
  return Orders
}

function counted<Answer>(answer: (run: number) => Answer) {
  let runs = 0
  const run = () => {
    runs += 1
    return answer(runs)
  }
  return { run, runs: () => runs }
}

test.each(everywhere)(
  'what decorators add to a value is kept with it ($platform, $mode)',
  async ({ platform, mode }) => {
    const { run, runs } = counted((id) => ({ id }))
    const controllers = [orders(run, HttpCode(202), Header('content-language', 'de'))]
    await inNest({ platform, mode, metadata: { controllers } }, async ({ post }) => {
      const first = await post()
      const again = await post()
      expect(shown(first)).toEqual({ status: 202, body: '{"id":1}', replayed: false })
      expect(shown(again)).toEqual({ ...shown(first), replayed: true })
      expect(again.headers).toMatchObject({
        'content-language': 'de',
        'content-type': first.headers['content-type'],
      })
      expect(runs()).toBe(1)
    })
  },
)

test.each(everywhere)('a redirect is kept as it was sent ($platform, $mode)', async ({ platform, mode }) => {
  const { run, runs } = counted((id) => ({ url: `/orders/${id}`, statusCode: 303 }))
  const controllers = [orders(run, Redirect('/elsewhere', 307))]
  await inNest({ platform, mode, metadata: { controllers } }, async ({ post }) => {
    for (const replayed of [false, true]) {
      const { status, headers, ...got } = await post()
      expect([status, headers.location, got.replayed]).toEqual([303, '/orders/1', replayed])
    }
    expect(runs()).toBe(1)
  })
})

test.each(everywhere)(
  'an Observable runs once, and its last value is the reply ($platform, $mode)',
  async ({ platform, mode }) => {
    const { run, runs } = counted((id) => timer(5).pipe(map(() => ({ id }))))
    const controllers = [orders(async () => defer(run))]
    await inNest({ platform, mode, metadata: { controllers } }, async ({ post }) => {
      expect(shown(await post())).toEqual({ status: 201, body: '{"id":1}', replayed: false })
      expect(shown(await post())).toEqual({ status: 201, body: '{"id":1}', replayed: true })
      expect(runs()).toBe(1)
    })
  },
)

test.each(platforms)('an Observable that fails is a throw: nothing is kept (%s)', async (platform) => {
  const { run, runs } = counted((id) =>
    id === 1 ? throwError(() => new BadRequestException('no')) : from([{ id: 0 }, { id }]),
  )
  await inNest({ platform, metadata: { controllers: [orders(run)] } }, async ({ post }) => {
    expect((await post()).status).toBe(400)
    expect(shown(await post())).toEqual({ status: 201, body: '{"id":2}', replayed: false })
    expect(runs()).toBe(2)
  })
})

test.each(everywhere)(
  'a reply(...) that a method returns is sent as it is ($platform, $mode)',
  async ({ platform, mode }) => {
    const { run } = counted((id) => of(reply(207, `n${id}`, { 'content-type': 'text/x-id' })))
    await inNest({ platform, mode, metadata: { controllers: [orders(run)] } }, async ({ post }) => {
      for (const replayed of [false, true]) {
        const got = await post()
        expect(shown(got)).toEqual({ status: 207, body: 'n1', replayed })
        expect(got.headers['content-type']).toBe('text/x-id')
      }
    })
  },
)

test.each(everywhere)(
  'a file is kept whole, or told of where it is too large ($platform, $mode)',
  async ({ platform, mode }) => {
    const { run, runs } = counted(() => new StreamableFile(Buffer.alloc(3000, 'x'), { type: 'text/csv' }))
    const controllers = [orders(run)]
    await inNest({ platform, mode, metadata: { controllers } }, async ({ post }) => {
      const first = await post()
      const again = await post()
      expect([first.body.length, first.headers['content-type']]).toEqual([3000, 'text/csv'])
      expect([again.replayed, again.body.equals(first.body)]).toEqual([true, true])
    })
    await inNest({ platform, mode, maxReplyBytes: 1000, metadata: { controllers } }, async ({ post }) => {
      expect((await post()).body.length).toBe(3000)
      const again = await post()
      expect([again.status, again.headers['content-type']]).toEqual([409, 'application/problem+json'])
    })
    expect(runs()).toBe(2)
  },
)

test.each(everywhere)(
  'a guard comes before: whom it refuses costs no key and sees no replay ($platform, $mode)',
  async ({ platform, mode }) => {
    class Only implements CanActivate {
      canActivate(context: ExecutionContext) {
        return context.switchToHttp().getRequest().headers.authorization === 'alice'
      }
    }
    const { run, runs } = counted((id) => ({ id }))
    await inNest(
      { platform, mode, metadata: { controllers: [orders(run, UseGuards(Only))] } },
      async ({ post }) => {
        expect((await post('/orders', { caller: 'mallory' })).status).toBe(403)
        expect(runs()).toBe(0)
        expect((await post()).replayed).toBe(false)
        expect((await post('/orders', { caller: 'mallory' })).status).toBe(403)
        expect((await post()).replayed).toBe(true)
        expect(runs()).toBe(1)
      },
    )
  },
)

test.each(everywhere)(
  'what a pipe refuses frees the key, for another body too ($platform, $mode)',
  async ({ platform, mode }) => {
    const positive = {
      transform(value: { total: number } | undefined) {
        if (value?.total === 0) throw new BadRequestException('total')
        return value
      },
    }
    const { run, runs } = counted((id) => ({ id }))
    await inNest(
      { platform, mode, metadata: { controllers: [orders(run, UsePipes(positive))] } },
      async ({ post }) => {
        expect((await post('/orders', { json: { total: 0 } })).status).toBe(400)
        expect(shown(await post())).toEqual({ status: 201, body: '{"id":1}', replayed: false })
        expect(runs()).toBe(1)
      },
    )
  },
)

test.each(everywhere)(
  'a pipe of a parameter frees the key ($platform, $mode)',
  async ({ platform, mode }) => {
    class Orders {
      create(id: number) {
        return { id }
      }
    }
    Param('id', ParseIntPipe)(Orders.prototype, 'create', 0)
    method(Orders, 'create', Post('orders/:id'), Idempotent())
    Controller()(Orders)
    await inNest({ platform, mode, metadata: { controllers: [Orders] } }, async ({ post }) => {
      expect((await post('/orders/x')).status).toBe(400)
      expect(shown(await post('/orders/7'))).toEqual({ status: 201, body: '{"id":7}', replayed: false })
    })
  },
)

class TeapotFilter implements ExceptionFilter {
  seen = 0
  constructor(readonly status: number) {}
  catch(error: Error, host: { switchToHttp(): { getResponse(): unknown } }) {
    this.seen += 1
    const response = host.switchToHttp().getResponse() as Response2
    response.status(this.status).send({ filtered: error.message })
  }
}
Catch()(TeapotFilter)

test.each(everywhere)(
  'what a filter makes of a throw is not kept in transaction mode, whatever its status ($platform, $mode)',
  async ({ platform, mode }) => {
    for (const status of [200, 418]) {
      const filter = new TeapotFilter(status)
      const { run, runs } = counted((id) => {
        throw new Error(`boom ${id}`)
      })
      await inNest(
        { platform, mode, metadata: { controllers: [orders(run, UseFilters(filter))] } },
        async ({ post }) => {
          expect(shown(await post())).toEqual({ status, body: '{"filtered":"boom 1"}', replayed: false })
          const again = await post()
          expect([again.status, again.replayed]).toEqual([status, mode === 'lease'])
          expect(runs()).toBe(mode === 'lease' ? 1 : 2)
        },
      )
    }
  },
)

test.each(platforms)(
  'our refusals go past the filters, and what scope throws goes there (%s)',
  async (platform) => {
    const filter = new TeapotFilter(418)
    const scope = (request: { headers: { authorization?: string } }) => {
      if (request.headers.authorization === 'nobody') throw new HttpException('who?', 401)
      return 's'
    }
    const prepare = (app: { useGlobalFilters(filter: ExceptionFilter): unknown }) =>
      app.useGlobalFilters(filter)
    const controllers = [orders(() => ({ done: true }))]
    await inNest({ platform, scope, metadata: { controllers }, prepare }, async ({ post }) => {
      expect((await post('/orders', { key: null })).headers['content-type']).toBe('application/problem+json')
      expect((await post()).status).toBe(201)
      expect((await post('/orders', { json: { total: 2 } })).status).toBe(422)
      expect(filter.seen).toBe(0)
      expect(shown(await post('/orders', { caller: 'nobody' }))).toMatchObject({
        status: 418,
        body: '{"filtered":"who?"}',
      })
      expect(filter.seen).toBe(1)
    })
  },
)

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
