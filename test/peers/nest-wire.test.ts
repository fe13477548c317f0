/** Who else stands around a method of Nest, and what goes over the wire: interceptors, clients that leave, streams of events, uploads. */
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  type INestApplication,
  type NestInterceptor,
  Post,
  RequestMethod,
  Sse,
  StreamableFile,
  UploadedFile,
  UseInterceptors,
} from '@nestjs/common'
import { APP_INTERCEPTOR } from '@nestjs/core'
import { FileInterceptor, type NestExpressApplication } from '@nestjs/platform-express'
import compression from 'compression'
import { defer, from, lastValueFrom, type Observable, throwError, timer } from 'rxjs'
import { finalize, map, tap, timeout } from 'rxjs/operators'
import { expect, test, vi } from 'vitest'
import { Idempotent } from '../../dist/http/nest.js'
import { start } from '../../dist/testing/http/wire.js'
import { everywhere, inNest, method, orders, platforms, shown } from './nest-room.js'

const around = (change: (chain: Observable<never>) => Observable<unknown>): NestInterceptor => ({
  intercept: (_: ExecutionContext, next: CallHandler) => change(next.handle() as Observable<never>),
})

/** Of the root module: they stand around ours, and those of `app.useGlobalInterceptors` inside. */
const outside = (...interceptors: NestInterceptor[]) =>
  interceptors.map((useValue) => ({ provide: APP_INTERCEPTOR, useValue }))

test.each(everywhere)(
  'interceptors around us shape the reply once, and come to their end on replays ($platform, $mode)',
  async ({ platform, mode }) => {
    const ends: unknown[] = []
    const envelope = around((chain) => chain.pipe(map((data) => ({ data }))))
    const logging = around((chain) =>
      chain.pipe(
        tap((seen) => ends.push(seen)),
        finalize(() => ends.push('end')),
      ),
    )
    let runs = 0
    const controllers = [orders(() => ({ id: ++runs }))]
    await inNest(
      { platform, mode, metadata: { controllers, providers: outside(logging, envelope) } },
      async ({ post }) => {
        expect(shown(await post())).toEqual({ status: 201, body: '{"data":{"id":1}}', replayed: false })
        expect(shown(await post())).toEqual({ status: 201, body: '{"data":{"id":1}}', replayed: true })
        await vi.waitFor(() => expect(ends).toEqual([{ data: { id: 1 } }, 'end', { data: undefined }, 'end']))
        expect(runs).toBe(1)
      },
    )
  },
)

test.each(everywhere)(
  'an interceptor that cannot do with a replay breaks neither it nor its connection ($platform, $mode)',
  async ({ platform, mode }) => {
    let threw = 0
    const reading = around((chain) =>
      chain.pipe(
        map((data: { id: number }) => {
          threw += 1
          const { id } = data
          threw -= 1
          return { id }
        }),
      ),
    )
    const controllers = [orders(() => ({ id: 7 }))]
    await inNest(
      { platform, mode, metadata: { controllers, providers: outside(reading) } },
      async ({ url, post }) => {
        await post()
        const sending = {
          method: 'POST',
          headers: { 'idempotency-key': 'k', 'content-type': 'application/json' },
          body: '{"total":1}',
        }
        for (let index = 0; index < 5; index += 1) {
          const got = await fetch(`${url}/orders`, sending)
          expect([got.status, got.headers.get('idempotent-replayed'), await got.text()]).toEqual([
            201,
            'true',
            '{"id":7}',
          ])
        }
        await vi.waitFor(() => expect(threw).toBe(5))
      },
    )
  },
)

test.each(everywhere)(
  'a throw of an interceptor around us is no reply to keep in transaction mode ($platform, $mode)',
  async ({ platform, mode }) => {
    let runs = 0
    const failing = around((chain) =>
      chain.pipe(
        map((data) => {
          if (runs === 1) throw Object.assign(new Error('no'), { statusCode: 400 })
          return data
        }),
      ),
    )
    const controllers = [orders(() => ({ id: ++runs }))]
    await inNest(
      { platform, mode, metadata: { controllers, providers: outside(failing) } },
      async ({ post }) => {
        expect((await post()).status).toBe(400)
        const again = await post()
        expect([again.status, again.replayed]).toEqual(mode === 'transaction' ? [201, false] : [400, true])
      },
    )
  },
)

test.each(platforms)('a time-out around us answers, rolls back and frees the key (%s)', async (platform) => {
  let runs = 0
  const impatient = around((chain) => chain.pipe(timeout(runs === 0 ? 20 : 10_000)))
  const controllers = [
    orders(async () => {
      runs += 1
      if (runs === 1) await lastValueFrom(timer(200))
      return { id: runs }
    }),
  ]
  await inNest({ platform, metadata: { controllers, providers: outside(impatient) } }, async ({ post }) => {
    expect((await post()).status).toBe(500)
    expect(shown(await post())).toEqual({ status: 201, body: '{"id":2}', replayed: false })
  })
})

test.each(everywhere)(
  'interceptors of the method and of `useGlobalInterceptors` are inside: a replay does not reach them ($platform, $mode)',
  async ({ platform, mode }) => {
    let entered = 0
    const counting = around((chain) => {
      entered += 1
      return chain.pipe(map((id) => ({ id })))
    })
    const controllers = [orders(() => 1, UseInterceptors(counting))]
    const prepare = (app: INestApplication) => app.useGlobalInterceptors(counting)
    await inNest({ platform, mode, metadata: { controllers }, prepare }, async ({ post }) => {
      expect((await post()).body.toString()).toBe('{"id":{"id":1}}')
      expect(shown(await post())).toEqual({ status: 201, body: '{"id":{"id":1}}', replayed: true })
      expect(entered).toBe(2)
    })
  },
)

test.each(everywhere)(
  'a client that leaves an Observable does not stop it: no second run in lease mode, none half done in the other ($platform, $mode)',
  async ({ platform, mode }) => {
    let runs = 0
    let ended = 0
    let go: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const run = () =>
      defer(() => {
        runs += 1
        return from(gate.then(() => ({ id: ++ended })))
      })
    await inNest({ platform, mode, metadata: { controllers: [orders(run)] } }, async ({ app, url, post }) => {
      const cut = start(`${url}/orders`, { key: 'k', json: { total: 1 } })
      cut.on('error', () => undefined)
      await vi.waitFor(() => expect(runs).toBe(1))
      cut.destroy()
      await vi.waitFor(async () => expect(await connections(app)).toBe(0))
      go()
      await vi.waitFor(() => expect(ended).toBe(1))
      await vi.waitFor(async () => {
        const again = await post()
        expect(again.headers['retry-after']).toBeUndefined()
        if (mode === 'lease') expect([again.status, runs]).toEqual([409, 1])
        else expect([again.status, again.replayed, runs]).toEqual([201, false, 2])
      })
    })
  },
)

test.each(
  everywhere.flatMap((kind) =>
    (['nothing', 'a file', 'a value'] as const).map((what) => ({ ...kind, what })),
  ),
)(
  'a client that leaves before $what is answered comes back to all of it ($platform, $mode)',
  async ({ platform, mode, what }) => {
    let runs = 0
    let ended = 0
    let go: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const bodies = { nothing: '', 'a file': 'file'.repeat(50_000), 'a value': '{"id":1}' }
    const answers = {
      nothing: () => undefined,
      'a file': () => new StreamableFile(Buffer.from(bodies['a file'])),
      'a value': () => ({ id: 1 }),
    }
    const run = async () => {
      runs += 1
      await gate
      ended += 1
      return answers[what]()
    }
    await inNest({ platform, mode, metadata: { controllers: [orders(run)] } }, async ({ app, url, post }) => {
      const cut = start(`${url}/orders`, { key: 'k', json: { total: 1 } })
      cut.on('error', () => undefined)
      await vi.waitFor(() => expect(runs).toBe(1))
      cut.destroy()
      await vi.waitFor(async () => expect(await connections(app)).toBe(0))
      go()
      await vi.waitFor(() => expect(ended).toBe(1))
      await vi.waitFor(async () => {
        const again = await post()
        expect(again.headers['retry-after']).toBeUndefined()
        expect([shown(again), runs]).toEqual([{ status: 201, body: bodies[what], replayed: true }, 1])
      })
    })
  },
)

function connections(app: INestApplication): Promise<number> {
  return new Promise((resolve, reject) => {
    app
      .getHttpServer()
      .getConnections((error: Error | null, count: number) => (error ? reject(error) : resolve(count)))
  })
}

test.each(platforms)(
  'events go out as they come in lease mode, and are not replayed (%s)',
  async (platform) => {
    let runs = 0
    class Events {
      create() {
        runs += 1
        return from([{ data: 'one' }, { data: 'two' }])
      }
    }
    method(Events, 'create', Sse('orders', { method: RequestMethod.POST }), Idempotent())
    Controller()(Events)
    await inNest({ platform, mode: 'lease', metadata: { controllers: [Events] } }, async ({ post }) => {
      const first = await post()
      expect(first.headers['content-type']).toMatch('text/event-stream')
      expect(first.body.toString()).toMatch(/data: one[\s\S]*data: two/)
      const again = await post()
      expect([again.status, again.headers['content-type']]).toEqual([409, 'application/problem+json'])
      expect(runs).toBe(1)
    })
  },
)

test('events that break off are a failure', async () => {
  let runs = 0
  class Events {
    create() {
      runs += 1
      return throwError(() => new Error('no events'))
    }
  }
  method(Events, 'create', Sse('orders', { method: RequestMethod.POST }), Idempotent())
  Controller()(Events)
  await inNest({ mode: 'lease', metadata: { controllers: [Events] } }, async ({ post }) => {
    expect((await post()).status).toBe(500)
    expect((await post()).status).toBe(500)
    expect(runs).toBe(2)
  })
})

test.each(['before', 'behind'] as const)(
  'an upload counts by name and content, with the interceptor that reads it %s us',
  async (place) => {
    let runs = 0
    class Uploads {
      create(file: { originalname: string; buffer: Buffer }) {
        runs += 1
        return { name: file.originalname, size: file.buffer.length }
      }
    }
    UploadedFile()(Uploads.prototype, 'create', 0)
    const upload = FileInterceptor('file')
    method(
      Uploads,
      'create',
      Post('orders'),
      Idempotent(),
      ...(place === 'behind' ? [UseInterceptors(upload)] : []),
    )
    Controller()(Uploads)
    const form = (boundary: string, text: string) => ({
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
      body: `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${text}\r\n--${boundary}--\r\n`,
    })
    const providers = place === 'before' ? outside(new upload()) : []
    await inNest({ metadata: { controllers: [Uploads], providers } }, async ({ post }) => {
      expect((await post('/orders', form('x', 'hello'))).body.toString()).toBe('{"name":"a.txt","size":5}')
      expect((await post('/orders', form('y', 'hello'))).replayed).toBe(true)
      expect((await post('/orders', form('z', 'other'))).status).toBe(422)
      expect(runs).toBe(1)
    })
  },
)

test.each(['transaction', 'lease'] as const)(
  'compression before us works on first replies and on replays (%s)',
  async (mode) => {
    const prepare = (app: INestApplication) =>
      (app as NestExpressApplication).use(compression({ threshold: 0 }))
    const text = 'word '.repeat(1000)
    await inNest({ mode, metadata: { controllers: [orders(() => text)] }, prepare }, async ({ url }) => {
      const headers = { 'idempotency-key': 'k' }
      for (const replayed of [null, 'true', 'true']) {
        const got = await fetch(`${url}/orders`, { method: 'POST', headers })
        expect(got.headers.get('content-encoding')).toMatch(/gzip|br/)
        expect([got.headers.get('idempotent-replayed'), await got.text()]).toEqual([replayed, text])
      }
    })
  },
)
