/** What is special in Nest: what its decorators make of a method, and who stands before and behind it. */
import {
  BadRequestException,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Header,
  HttpCode,
  HttpException,
  Param,
  ParseIntPipe,
  Post,
  Redirect,
  StreamableFile,
  UseFilters,
  UseGuards,
  UsePipes,
} from '@nestjs/common'
import { defer, from, of, throwError, timer } from 'rxjs'
import { map } from 'rxjs/operators'
import { expect, test } from 'vitest'
import { Idempotent } from '../../dist/http/nest.js'
import { reply } from '../../dist/index.js'
import {
  type AnyResponse,
  counted,
  everywhere,
  inNest,
  method,
  orders,
  platforms,
  shown,
} from './nest-room.js'

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
    const response = host.switchToHttp().getResponse() as AnyResponse
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
