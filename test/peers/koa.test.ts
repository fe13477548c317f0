/** Koa, beyond what the suite holds every adapter to: its bodies, direct writes, routers, middleware beside ours, clients that leave. */
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { bodyParser } from '@koa/bodyparser'
import { Router } from '@koa/router'
import type { Context } from 'koa'
import compress from 'koa-compress'
import multer from 'multer'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/koa.js'
import { corsExposedHeaders, reply } from '../../dist/index.js'
import { gate, requestText, wire } from '../http/suite/site.js'
import { modes, random, shown } from './fastify-room.js'
import { around, inRoom } from './koa-room.js'

/** Every kind of body that Koa has. */
const answers: Record<string, (ctx: Context) => void> = {
  'a value': (ctx) => {
    ctx.status = 201
    ctx.set('location', '/orders/1')
    ctx.body = { id: random() }
  },
  'a text': (ctx) => {
    ctx.body = random()
  },
  'a page': (ctx) => {
    ctx.body = `<p>${random()}</p>`
  },
  bytes: (ctx) => {
    ctx.type = 'application/x-own'
    ctx.body = Buffer.from(random())
  },
  'a stream': (ctx) => {
    ctx.body = Readable.from([random(), ',', random()])
  },
  'a web stream': (ctx) => {
    ctx.body = new Blob([random()]).stream()
  },
  'a Blob': (ctx) => {
    ctx.body = new Blob([random()], { type: 'text/x-own' })
  },
  'a Response': (ctx) => {
    ctx.body = new Response(random(), { status: 203, headers: { 'content-type': 'text/x-own' } })
  },
  'null, which is a 204': (ctx) => {
    ctx.body = null
  },
  'no body and a status': (ctx) => {
    ctx.status = 202
  },
  'nothing, which is a 404': () => undefined,
  'a redirect': (ctx) => ctx.redirect(`/orders/${Math.random()}`),
  'direct writes': (ctx) => {
    ctx.respond = false
    ctx.res.writeHead(200, { 'content-type': 'text/x-own' })
    setImmediate(() => {
      ctx.res.write('a')
      ctx.res.end(random())
    })
  },
  'a direct end': (ctx) => {
    ctx.res.statusCode = 200
    ctx.res.end(random())
  },
}

for (const http2 of [false, true]) {
  for (const mode of modes) {
    for (const [how, answer] of Object.entries(answers)) {
      test(`a retry gets what came first: ${how} (${mode}${http2 ? ', HTTP/2' : ''})`, () =>
        inRoom(
          (app, safe) => around(app, safe, answer),
          async ({ post, errors }) => {
            const first = await post()
            const again = await post()
            expect(first.replayed).toBe(false)
            expect(shown(again)).toEqual({ ...shown(first), replayed: true })
            for (const name of ['content-type', 'location'])
              expect(again.headers[name]).toBe(first.headers[name])
            expect(errors).toEqual([])
          },
          { mode, http2 },
        ))
    }
  }
}

for (const mode of modes) {
  for (const order of ['before', 'behind']) {
    test(`a compressed reply is replayed to the byte, and plain to whom takes no coding: koa-compress ${order} us (${mode})`, () =>
      inRoom(
        (app, safe) => {
          if (order === 'before') app.use(compress())
          app.use(idempotent(safe))
          if (order === 'behind') app.use(compress())
          app.use((ctx) => {
            ctx.body = { id: random(), text: 'x'.repeat(5000) }
          })
        },
        async ({ post }) => {
          const gzip = { headers: { 'accept-encoding': 'gzip' } }
          const first = await post('/orders', gzip)
          const again = await post('/orders', gzip)
          for (const got of [first, again]) expect(got.headers['content-encoding']).toBe('gzip')
          expect(again.body.equals(first.body)).toBe(true)
          expect((await post()).body.equals(gunzipSync(first.body))).toBe(true)
        },
        { mode },
      ))
  }

  for (const how of ['a value', 'a stream', 'direct writes', 'a redirect', 'null, which is a 204']) {
    test(`a client that leaves changes nothing, the retry is a replay: ${how} (${mode})`, () => {
      const entered = gate()
      const left = gate()
      const runs: unknown[] = []
      return inRoom(
        (app, safe) =>
          around(app, safe, async (ctx) => {
            if (ctx.get('idempotency-key') === 'k1') {
              runs.push(1)
              ctx.req.socket.once('close', () => left.open())
              entered.open()
              await left.opened
            }
            answers[how]?.(ctx)
          }),
        async ({ port, post }) => {
          const client = wire(port)
          client.write(requestText('/orders', '{"total":1}'))
          await entered.opened
          client.hangUp()
          const whole = await post('/orders', { key: 'k2' })
          await expect.poll(async () => (await post()).status).toBe(whole.status)
          const again = await post()
          expect(again.replayed).toBe(true)
          const like = (body: Buffer) => body.toString().replace(/[\d.e-]+/g, '#')
          expect(like(again.body)).toBe(like(whole.body))
          expect(runs).toHaveLength(1)
        },
        { mode },
      )
    })
  }
}

test('a client that leaves in the middle of a stream leaves work that is done, and not done again', () => {
  const entered = gate()
  const left = gate()
  let runs = 0
  return inRoom(
    (app, safe) =>
      around(app, safe, (ctx) => {
        runs += 1
        ctx.req.socket.once('close', () => left.open())
        async function* pieces() {
          yield 'a'
          entered.open()
          await left.opened
          yield 'b'
        }
        ctx.body = Readable.from(pieces())
      }),
    async ({ port, post }) => {
      const client = wire(port)
      client.write(requestText('/orders', '{"total":1}'))
      await entered.opened
      client.hangUp()
      await expect.poll(async () => (await post()).body.toString()).toMatch(/^ab$|NOT_REPLAYABLE/)
      expect(runs).toBe(1)
    },
    { mode: 'lease' },
  )
})

test('a handler that returns its reply passes the middleware before us each time', () =>
  inRoom(
    (app, safe) => {
      app.use(compress())
      app.use(async (ctx, next) => {
        await next()
        ctx.set('x-outer', 'yes')
      })
      app.use(
        idempotent(safe, {}, () =>
          reply(201, { id: random(), text: 'x'.repeat(5000) }, { 'x-a': ['1', '2'], etag: '"1"' }),
        ),
      )
    },
    async ({ post }) => {
      const gzip = { headers: { 'accept-encoding': 'gzip' } }
      const first = await post('/orders', gzip)
      expect(first.headers).toMatchObject({
        'content-encoding': 'gzip',
        'x-outer': 'yes',
        'x-a': '1, 2',
        etag: '"1"',
      })
      const again = await post('/orders', gzip)
      expect(again.headers).toMatchObject({ 'content-encoding': 'gzip', 'x-outer': 'yes', etag: '"1"' })
      expect(gunzipSync(again.body).equals(gunzipSync(first.body))).toBe(true)
      expect((await post('/orders', { json: 2 })).headers['x-outer']).toBe('yes')
    },
  ))

for (const status of [200, 201, 204, 205, 304]) {
  test(`a reply without a body keeps its status: ${status}`, () =>
    inRoom(
      (app, safe) => app.use(idempotent(safe, {}, () => reply(status))),
      async ({ post }) => {
        expect(shown(await post())).toEqual({ status, body: '', replayed: false })
        if (status !== 304) expect(shown(await post())).toEqual({ status, body: '', replayed: true })
      },
    ))
}

test('headers of earlier middleware are on every answer of ours', () =>
  inRoom(
    (app, safe) => {
      app.use(async (ctx, next) => {
        ctx.set('access-control-allow-origin', 'https://shop.example')
        ctx.set('access-control-expose-headers', [...corsExposedHeaders])
        await next()
      })
      around(app, safe, (ctx) => {
        ctx.body = { id: random() }
      })
    },
    async ({ post }) => {
      for (const sending of [{}, {}, { json: 2 }, { key: null }]) {
        const got = await post('/orders', sending)
        expect(got.headers['access-control-allow-origin']).toBe('https://shop.example')
        expect(got.headers['access-control-expose-headers']).toContain('Idempotent-Replayed')
      }
    },
  ))

test('the path counts as the client sent it, whatever routers take off', () =>
  inRoom(
    (app, safe) => {
      for (const prefix of ['/v1', '/v2']) {
        const inner = new Router()
        inner.post('/orders', idempotent(safe), (ctx: Context) => {
          ctx.body = { id: random() }
        })
        const router = new Router({ prefix })
        router.use('/eu', inner.routes())
        app.use(router.routes())
      }
    },
    async ({ post }) => {
      const first = await post('/v1/eu/orders')
      expect(shown(await post('/v1/eu/orders'))).toEqual({ ...shown(first), replayed: true })
      expect((await post('/v2/eu/orders')).status).toBe(422)
      expect(shown(await post('/v2/eu/orders', { key: 'k2' }))).toMatchObject({
        status: 200,
        replayed: false,
      })
      expect((await post('/v3/eu/orders', { key: null })).status).toBe(404)
    },
  ))

test('numbers count to the last digit behind a parser, and forms carry their key', () =>
  inRoom(
    (app, safe) => {
      app.use(bodyParser({ enableTypes: ['json', 'form'] }))
      around(app, safe, (ctx) => {
        ctx.body = { body: ctx.request.body, id: random() }
      })
    },
    async ({ post }) => {
      const json = { json: undefined, headers: { 'content-type': 'application/json' } }
      const first = await post('/orders', { ...json, body: '{"id":9007199254740992}' })
      expect(shown(await post('/orders', { ...json, body: '{ "id": 9007199254740992.0 }' }))).toEqual({
        ...shown(first),
        replayed: true,
      })
      expect((await post('/orders', { ...json, body: '{"id":9007199254740993}' })).status).toBe(422)
    },
  ))

test('a form carries its key in a field, and multipart is left for whoever reads it', () =>
  inRoom(
    (app, safe) => {
      app.use(bodyParser())
      app.use(idempotent(safe, { formField: 'key', required: false }))
      app.use(async (ctx) => {
        let length = 0
        if (ctx.is('multipart')) for await (const chunk of ctx.req) length += chunk.length
        ctx.body = { length, id: random() }
      })
    },
    async ({ post }) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const sent = (body: string) => post('/orders', { key: null, json: undefined, headers, body })
      const first = await sent('key=a&total=1')
      expect(shown(await sent('key=a&total=1'))).toEqual({ ...shown(first), replayed: true })
      expect((await sent('key=a&total=2')).replayed).toBe(false)
      const form = (boundary: string) => ({
        json: undefined,
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: `--${boundary}\r\ncontent-disposition: form-data; name="total"\r\n\r\n1\r\n--${boundary}--\r\n`,
      })
      const upload = await post('/orders', form('one'))
      expect(upload.body.toString()).toContain(`"length":${form('one').body.length}`)
      expect(shown(await post('/orders', form('two')))).toEqual({ ...shown(upload), replayed: true })
    },
  ))

test('files that multer has read before us count by name and content', () => {
  const read = multer().any()
  return inRoom(
    (app, safe) => {
      // As @koa/multer has it.
      app.use(async (ctx, next) => {
        const req = ctx.req as typeof ctx.req & { body?: unknown; files?: unknown }
        await promisify(read)(req as never, ctx.res as never)
        Object.assign(ctx.request, { body: req.body })
        Object.assign(ctx, { files: req.files })
        await next()
      })
      around(app, safe, (ctx) => {
        ctx.body = { id: random() }
      })
    },
    async ({ post }) => {
      const form = (boundary: string, text: string) => ({
        json: undefined,
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${text}\r\n--${boundary}--\r\n`,
      })
      const first = await post('/orders', form('one', 'a'))
      expect(first.status).toBe(200)
      expect(shown(await post('/orders', form('two', 'a')))).toEqual({ ...shown(first), replayed: true })
      expect((await post('/orders', form('one', 'b'))).status).toBe(422)
    },
  )
})

test('events are never held back in lease mode, and not replayed', () => {
  const seen = gate()
  return inRoom(
    (app, safe) =>
      around(app, safe, (ctx) => {
        ctx.type = 'text/event-stream'
        ctx.body = Readable.from(
          (async function* events() {
            yield 'data: 1\n\n'
            await seen.opened
            yield 'data: 2\n\n'
          })(),
        )
      }),
    async ({ port, post }) => {
      const client = wire(port)
      client.write(requestText('/orders', '{"total":1}'))
      expect(await client.sees('data: 1')).toContain('200 OK')
      seen.open()
      expect(await client.sees('data: 2')).toContain('data: 2')
      client.hangUp()
      await expect.poll(async () => (await post()).body.toString()).toContain('NOT_REPLAYABLE')
    },
    { mode: 'lease' },
  )
})
