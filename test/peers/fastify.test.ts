/** Fastify, beyond what the suite holds every adapter to: its ways to answer, its hooks, its errors, its encapsulation. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/fastify.js'
import { corsExposedHeaders, reply } from '../../dist/index.js'
import { type Answer, around, inRoom, modes, random, shown } from './fastify-room.js'

/** Every way to answer that Fastify has. */
const answers: Record<string, Answer> = {
  'a returned value': async (_, answer) => {
    answer.code(201).header('location', '/orders/1')
    return { id: random() }
  },
  'a returned text': async () => random(),
  bytes: async (_, answer) => answer.type('application/x-own').send(Buffer.from(random())),
  'a callback': (_, answer) => {
    setImmediate(() => answer.code(202).send({ id: random() }))
  },
  'a promise of the reply': (_, answer) => {
    setImmediate(() => answer.send({ id: random() }))
    return answer
  },
  'a stream': async (_, answer) => answer.type('text/csv').send(Readable.from([random(), ',', random()])),
  'a web stream': async (_, answer) => answer.send(new Blob([random()]).stream()),
  'a Response': async () =>
    new Response(random(), { status: 203, headers: { 'content-type': 'text/x-own' } }),
  'a serializer of the reply': async (_, answer) =>
    answer
      .serializer((value: unknown) => `<${String(value)}>`)
      .type('text/x-own')
      .send(Object(random())),
  '204': async (_, answer) => answer.code(204).send(),
  'a redirect': async (_, answer) => answer.redirect(`/orders/${random()}`, 303),
  'a hijacked reply': (_, answer) => {
    answer.hijack()
    answer.raw.writeHead(200, { 'content-type': 'text/x-own', 'content-length': 20 })
    answer.raw.write('0123456789')
    answer.raw.end(random().padEnd(10).slice(-10))
  },
  'a raw end': (_, answer) => {
    answer.raw.end(random())
  },
  'a chosen refusal': async (_, answer) => answer.code(404).send({ error: random() }),
}

for (const mode of modes) {
  for (const [how, answer] of Object.entries(answers)) {
    test(`a retry gets what came first: ${how} (${mode})`, () =>
      inRoom(
        (app, safe) => around(app, safe, answer),
        async ({ post }) => {
          const first = await post()
          const again = await post()
          expect(first.replayed).toBe(false)
          expect(shown(again)).toEqual({ ...shown(first), replayed: true })
          for (const name of ['content-type', 'location'])
            expect(again.headers[name]).toBe(first.headers[name])
        },
        { mode },
      ))
  }

  test(`a 304 is not replayed (${mode})`, () =>
    inRoom(
      (app, safe) => around(app, safe, async (_, answer) => answer.code(304).send()),
      async ({ post }) => {
        expect((await post()).status).toBe(304)
        expect(shown(await post())).toMatchObject({
          status: 409,
          body: expect.stringContaining('NOT_REPLAYABLE'),
        })
      },
      { mode },
    ))

  test(`what schemas and hooks make of a reply is made once (${mode})`, () =>
    inRoom(
      async (app, safe) => {
        app.addHook('preSerialization', async (_request, _answer, value) => ({ wrapped: value }))
        app.addHook('onSend', async (_request, answer, payload) => {
          answer.header('etag', '"x"')
          return `[${String(payload)}]`
        })
        await app.register(idempotent(safe))
        const schema = {
          response: {
            201: {
              type: 'object',
              properties: { wrapped: { type: 'object', properties: { id: { type: 'string' } } } },
            },
          },
        }
        app.post('/orders', { schema }, async (_, answer) =>
          answer.code(201).send({ id: random(), secret: 1 }),
        )
      },
      async ({ post }) => {
        const first = await post()
        expect(first.body.toString()).toMatch(/^\[\{"wrapped":\{"id":"order [\d.e-]+"\}\}\]$/)
        const again = await post()
        expect(shown(again)).toEqual({ ...shown(first), replayed: true })
        expect(again.headers.etag).toBe('"x"')
      },
      { mode },
    ))
}

test('a handler that returns its reply passes the hooks each time, and sees what the schema made of the body', () =>
  inRoom(
    (app, safe) => {
      app.addHook('onSend', async (_request, _answer, payload) => `[${String(payload)}]`)
      const schema = { body: { type: 'object', properties: { total: { type: 'string' } } } }
      app.post(
        '/orders',
        { schema },
        idempotent(safe, {}, ({ body }) => reply(201, { ...body, id: random() }, { 'x-a': ['1', '2'] })),
      )
    },
    async ({ post }) => {
      const first = await post()
      expect(first.body.toString()).toContain('[{"total":"1","id":"order')
      expect(first.headers['x-a']).toBe('1, 2')
      expect(shown(await post())).toEqual({ ...shown(first), replayed: true })
    },
  ))

test('headers of earlier hooks are on every answer of ours', () =>
  inRoom(
    async (app, safe) => {
      app.addHook('onRequest', async (_request, answer) => {
        answer.header('access-control-allow-origin', 'https://shop.example')
        answer.header('access-control-expose-headers', corsExposedHeaders.join(', '))
        answer.header('set-cookie', 'early=1')
      })
      await app.register(idempotent(safe))
      app.post('/orders', async (_, answer) => answer.header('set-cookie', 'late=1').send({ id: 1 }))
      app.post(
        '/replies',
        idempotent(safe, { operation: 'o' }, () => reply(201, { id: 1 }, { 'set-cookie': 'late=1' })),
      )
    },
    async ({ post }) => {
      const first = await post()
      expect(first.headers['set-cookie']).toBe('early=1, late=1')
      for (const got of [
        first,
        await post(),
        await post('/orders', { json: 2 }),
        await post('/orders', { key: null }),
      ]) {
        expect(got.headers['access-control-allow-origin']).toBe('https://shop.example')
        expect(got.headers['access-control-expose-headers']).toContain('Idempotent-Replayed')
        if (got !== first) expect(got.headers['set-cookie']).toBe('early=1')
      }
    },
  ))

test('whatever refuses a request comes before us: it costs no key, and sees every replay', () =>
  inRoom(
    async (app, safe) => {
      await app.register(idempotent(safe))
      const authenticate = async (request: FastifyRequest, answer: FastifyReply) => {
        if (request.headers.authorization !== 'alice') return answer.code(401).send()
        return undefined
      }
      const schema = { body: { type: 'object', required: ['total'] } }
      app.post('/orders', { schema, preHandler: authenticate }, async (_, answer) =>
        answer.code(201).send({ id: random() }),
      )
      await app.register(async (inner) => {
        inner.addHook('preHandler', authenticate)
        inner.post('/inner', async (_, answer) => answer.code(201).send({ id: random() }))
      })
    },
    async ({ post }) => {
      for (const path of ['/orders', '/inner']) {
        expect((await post(path, { caller: 'eve', key: path })).status).toBe(401)
        if (path === '/orders') expect((await post(path, { json: {}, key: path })).status).toBe(400)
        expect(shown(await post(path, { key: path }))).toMatchObject({ status: 201, replayed: false })
        expect((await post(path, { caller: 'eve', key: path })).status).toBe(401)
        expect(shown(await post(path, { key: path }))).toMatchObject({ status: 201, replayed: true })
      }
    },
  ))

test('a plugin covers the instance that it is registered in, and no other', () =>
  inRoom(
    async (app, safe) => {
      const handler = async () => ({ id: random() })
      await app.register(
        async (scope) => {
          await scope.register(idempotent(safe))
          scope.post('/orders', handler)
          scope.get('/orders', handler)
        },
        { prefix: '/v1' },
      )
      await app.register(
        async (scope) => {
          await scope.register(idempotent(safe))
          scope.post('/', handler)
        },
        { prefix: '/v2/orders' },
      )
      app.post('/free', handler)
    },
    async ({ post }) => {
      const first = await post('/v1/orders')
      expect(shown(await post('/v1/orders'))).toEqual({ ...shown(first), replayed: true })
      // The same key on another prefix is another request (rule 15).
      expect((await post('/v2/orders')).status).toBe(422)
      for (const path of ['/v2/orders', '/v2/orders/']) {
        expect(shown(await post(path, { key: path }))).toMatchObject({ status: 200, replayed: false })
        expect((await post(path, { key: path })).replayed).toBe(true)
      }
      expect((await post('/v1/orders', { method: 'GET', key: null })).status).toBe(200)
      expect((await post('/v1/none', { key: null })).status).toBe(404)
      expect(shown(await post('/free', { key: null }))).toMatchObject({ status: 200, replayed: false })
    },
  ))

test('routes that were declared before the plugin has loaded are covered', () =>
  inRoom(
    (app, safe) => {
      app.register(idempotent(safe))
      app.post('/orders', async () => ({ id: random() }))
    },
    async ({ post }) => {
      const first = await post()
      expect(shown(await post())).toEqual({ ...shown(first), replayed: true })
      expect((await post('/orders', { key: null })).status).toBe(400)
      expect((await post('/none', { key: null })).status).toBe(404)
    },
  ))

test('one route alone is covered by a preHandler, which keeps no refusal in transaction mode', () => {
  let runs = 0
  return inRoom(
    (app, safe) => {
      app.post('/orders', { preHandler: idempotent(safe) }, async () => ({ id: random() }))
      app.post('/refused', { preHandler: idempotent(safe) }, async (_, answer) => {
        runs += 1
        return answer.code(404).send()
      })
    },
    async ({ post }) => {
      const first = await post()
      expect(shown(await post())).toEqual({ ...shown(first), replayed: true })
      for (const _ of [1, 2]) expect((await post('/refused', { key: 'k2' })).status).toBe(404)
      expect(runs).toBe(2)
    },
  )
})

test('mounted twice on one way it refuses instead of waiting for itself', () =>
  inRoom(
    async (app, safe) => {
      await app.register(idempotent(safe))
      app.post(
        '/orders',
        idempotent(safe, {}, () => reply(201)),
      )
    },
    async ({ post }) => expect((await post()).body.toString()).toContain('OPTION_INVALID'),
  ))

test('a method that a route of ours does not cover is not found', () =>
  inRoom(
    (app, safe) =>
      app.all(
        '/orders',
        idempotent(safe, {}, () => reply(201)),
      ),
    async ({ post }) => {
      expect((await post()).status).toBe(201)
      expect((await post('/orders', { method: 'GET' })).status).toBe(404)
    },
  ))

for (const mode of modes) {
  test(`requests by app.inject are like any other (${mode})`, () =>
    inRoom(
      async (app, safe) => {
        app.post(
          '/replies',
          idempotent(safe, {}, ({ body }) => reply(201, { body, id: random() })),
        )
        await app.register((scope) => around(scope, safe, async ({ body }) => ({ body, id: random() })))
      },
      async ({ app }) => {
        for (const url of ['/replies', '/orders']) {
          const post = (total: number) =>
            app.inject({ method: 'POST', url, payload: { total }, headers: { 'idempotency-key': url } })
          const first = await post(1)
          const again = await post(1)
          expect(again.headers['idempotent-replayed']).toBe('true')
          expect(again.body).toBe(first.body)
          expect((await post(2)).statusCode).toBe(422)
        }
      },
      { mode },
    ))
}
