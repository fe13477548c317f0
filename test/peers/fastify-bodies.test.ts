/** Fastify: what is read of a request, who has read it before us, and who reads it behind us. */
import { gzipSync } from 'node:zlib'
import compress from '@fastify/compress'
import formbody from '@fastify/formbody'
import middie from '@fastify/middie'
import multipart from '@fastify/multipart'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { idempotent, rawBody } from '../../dist/http/fastify.js'
import { reply } from '../../dist/index.js'
import { inRoom, random, shown } from './fastify-room.js'

const json = { json: undefined, headers: { 'content-type': 'application/json' } }
const exact = { ...json, body: '{"id":9007199254740992}' }
const other = { ...json, body: '{"id":9007199254740993}' }
const spaced = { ...json, body: '{ "id": 9007199254740992.0 }' }

/** Parsers before us, each with what it leaves. */
const parsers: Record<string, (app: FastifyInstance) => void> = {
  "Fastify's own": () => undefined,
  'one of texts': (app) => {
    app.removeContentTypeParser('application/json')
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) =>
      done(null, JSON.parse(String(text))),
    )
  },
  'one of streams': (app) => {
    app.removeContentTypeParser('application/json')
    app.addContentTypeParser(
      'application/json',
      async (_request: unknown, payload: AsyncIterable<Buffer>) => {
        const chunks: Buffer[] = []
        for await (const chunk of payload) chunks.push(chunk)
        return JSON.parse(Buffer.concat(chunks).toString())
      },
    )
  },
  'one that keeps bytes at rawBody': (app) => {
    app.removeContentTypeParser('application/json')
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
      Object.assign(request, { rawBody: bytes })
      done(null, JSON.parse(String(bytes)))
    })
  },
  none: (app) => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  },
}

for (const [name, prepare] of Object.entries(parsers)) {
  test(`numbers count to the last digit behind a parser: ${name}`, () =>
    inRoom(
      async (app, safe) => {
        prepare(app)
        await app.register(rawBody)
        app.post(
          '/replies',
          idempotent(safe, {}, ({ body }) => reply(201, { body, id: random() })),
        )
        await app.register(async (scope) => {
          await scope.register(idempotent(safe))
          scope.post('/orders', async () => ({ id: random() }))
        })
      },
      async ({ post }) => {
        for (const path of ['/orders', '/replies']) {
          const first = await post(path, { ...exact, key: path })
          expect(first.replayed).toBe(false)
          expect(shown(await post(path, { ...spaced, key: path }))).toEqual({
            ...shown(first),
            replayed: true,
          })
          expect((await post(path, { ...other, key: path })).status).toBe(422)
        }
      },
    ))
}

test('what a schema adds, coerces or removes changes no fingerprint', () =>
  inRoom(
    async (app, safe) => {
      const schema = {
        body: {
          type: 'object',
          additionalProperties: false,
          properties: { total: { type: 'string' }, currency: { type: 'string', default: 'EUR' } },
        },
      }
      await app.register(idempotent(safe))
      app.post('/orders', { schema }, async ({ body }) => ({ body, id: random() }))
    },
    async ({ post }) => {
      const first = await post('/orders', { json: { total: 1 } })
      expect(first.body.toString()).toContain('{"total":"1","currency":"EUR"}')
      expect((await post('/orders', { json: { total: 1 } })).replayed).toBe(true)
      for (const changed of [{ total: '1' }, { total: 1, currency: 'EUR' }, { total: 1, note: 'x' }])
        expect((await post('/orders', { json: changed })).status).toBe(422)
    },
  ))

test('without rawBody the parsed value counts', () =>
  inRoom(
    (app, safe) =>
      app.post(
        '/orders',
        idempotent(safe, {}, ({ body }) => reply(201, body)),
      ),
    async ({ post }) => {
      const first = await post()
      expect(shown(await post())).toEqual({ ...shown(first), replayed: true })
      expect((await post('/orders', { json: { total: 2 } })).status).toBe(422)
    },
  ))

for (const order of ['before', 'behind']) {
  test(`a compressed retry of a request is the same request: @fastify/compress ${order} us`, () =>
    inRoom(
      async (app, safe) => {
        if (order === 'before') await app.register(compress)
        await app.register(idempotent(safe))
        if (order === 'behind') await app.register(compress)
        app.post('/orders', async ({ body }) => ({ body, id: random() }))
      },
      async ({ post }) => {
        const first = await post('/orders', exact)
        expect(first.status).toBe(200)
        const headers = { ...json.headers, 'content-encoding': 'gzip' }
        const zipped = { ...exact, headers, body: gzipSync(exact.body) }
        expect(shown(await post('/orders', zipped))).toEqual({ ...shown(first), replayed: true })
        expect((await post('/orders', { ...zipped, body: gzipSync(other.body) })).status).toBe(422)
        expect((await post('/orders', { ...zipped, key: 'k2' })).body.toString()).toContain(
          '"id":9007199254740992',
        )
      },
    ))
}

function form(boundary: string, total: string) {
  const part = (name: string, more: string, text: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`
  const body = `${part('total', '', total)}${part('file', '; filename="a.txt"', 'x'.repeat(100_000))}--${boundary}--\r\n`
  return { json: undefined, body, headers: { 'content-type': `multipart/form-data; boundary=${boundary}` } }
}

for (const attachFieldsToBody of [false, true, 'keyValues'] as const) {
  test(`a form with files reaches its handler whole, and counts without its boundary (attachFieldsToBody: ${attachFieldsToBody})`, () =>
    inRoom(
      async (app, safe) => {
        await app.register(multipart, { attachFieldsToBody })
        await app.register(idempotent(safe))
        app.post('/orders', async (request) => {
          if (attachFieldsToBody !== false)
            return { fields: Object.keys(request.body as object), id: random() }
          const lengths: number[] = []
          for await (const part of request.parts())
            lengths.push(part.type === 'file' ? (await part.toBuffer()).length : String(part.value).length)
          return { lengths, id: random() }
        })
      },
      async ({ post }) => {
        const first = await post('/orders', form('one', '1'))
        expect(first.body.toString()).toContain(attachFieldsToBody ? '["total","file"]' : '[1,100000]')
        expect(shown(await post('/orders', form('two', '1')))).toEqual({ ...shown(first), replayed: true })
        expect((await post('/orders', form('one', '2'))).status).toBe(422)
      },
    ))
}

test('a form carries its key in a field', () =>
  inRoom(
    async (app, safe) => {
      await app.register(formbody)
      await app.register(idempotent(safe, { formField: 'key' }))
      app.post('/orders', async () => ({ id: random() }))
    },
    async ({ post }) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const sent = (body: string) => post('/orders', { key: null, json: undefined, headers, body })
      const first = await sent('key=a&total=1')
      expect(shown(await sent('key=a&total=1'))).toEqual({ ...shown(first), replayed: true })
      expect(shown(await sent('key=a&total=2'))).toMatchObject({ status: 200, replayed: false })
      expect((await sent('total=1')).status).toBe(400)
    },
  ))

test("middleware of Express's kind stands before us", () =>
  inRoom(
    async (app, safe) => {
      await app.register(middie)
      app.use(
        (
          request: { headers: Record<string, unknown> },
          answer: { setHeader(name: string, value: string): void },
          next: () => void,
        ) => {
          request.headers['x-seen'] = 'yes'
          answer.setHeader('x-middleware', 'yes')
          next()
        },
      )
      await app.register(idempotent(safe))
      app.post('/orders', async ({ headers }) => ({ seen: headers['x-seen'], id: random() }))
    },
    async ({ post }) => {
      const first = await post()
      expect(first.body.toString()).toContain('"seen":"yes"')
      const again = await post()
      expect(shown(again)).toEqual({ ...shown(first), replayed: true })
      expect(again.headers['x-middleware']).toBe('yes')
    },
  ))
