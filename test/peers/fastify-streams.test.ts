/** Fastify: compression, streams of every length, and clients that leave. */
import { Readable } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import compress from '@fastify/compress'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/fastify.js'
import { reply } from '../../dist/index.js'
import { gate, requestText, wire } from '../http/suite/site.js'
import { around, inRoom, modes, random, shown } from './fastify-room.js'

const gzip = { headers: { 'accept-encoding': 'gzip' } }
const long = () => ({ id: random(), text: 'x'.repeat(5000) })

for (const mode of modes) {
  for (const order of ['before', 'behind']) {
    test(`a compressed reply is replayed to the byte, and plain to whom takes no coding: @fastify/compress ${order} us (${mode})`, () =>
      inRoom(
        async (app, safe) => {
          if (order === 'before') await app.register(compress)
          await app.register(idempotent(safe))
          if (order === 'behind') await app.register(compress)
          app.post('/orders', async () => long())
          app.post('/stream', async (_, answer) =>
            answer.type('text/plain').send(Readable.from([JSON.stringify(long())])),
          )
        },
        async ({ post }) => {
          for (const path of ['/orders', '/stream']) {
            const first = await post(path, { ...gzip, key: path })
            expect(first.headers['content-encoding']).toBe('gzip')
            const again = await post(path, { ...gzip, key: path })
            expect(again.headers['content-encoding']).toBe('gzip')
            expect(again.body.equals(first.body)).toBe(true)
            const plain = await post(path, { key: path })
            expect(plain.headers).not.toHaveProperty('content-encoding')
            expect(plain.body.equals(gunzipSync(first.body))).toBe(true)
          }
        },
        { mode },
      ))
  }

  test(`a stream that breaks is no answer (${mode})`, () => {
    let runs = 0
    return inRoom(
      (app, safe) =>
        around(app, safe, async (_, answer) => {
          runs += 1
          if (runs > 1) return { runs }
          return answer.send(
            Readable.from(
              (async function* pieces() {
                yield 'a piece'
                await new Promise((resolve) => setImmediate(resolve))
                throw new Error('the disk is gone')
              })(),
            ),
          )
        }),
      async ({ post }) => {
        const first = await post().then(
          ({ status }) => status,
          () => 'cut',
        )
        expect(first).toBe('cut')
        expect(shown(await post())).toEqual({ status: 200, body: '{"runs":2}', replayed: false })
      },
      { mode },
    )
  })

  test(`a client that leaves changes nothing: the retry is a replay (${mode})`, () => {
    const entered = gate()
    const left = gate()
    return inRoom(
      (app, safe) =>
        around(app, safe, async (request, answer) => {
          request.raw.socket.once('close', () => left.open())
          entered.open()
          await left.opened
          return answer.send(Readable.from(['a', 'b', random()]))
        }),
      async ({ port, post }) => {
        const client = wire(port)
        client.write(requestText('/orders', '{"total":1}'))
        await entered.opened
        client.hangUp()
        await expect
          .poll(async () => shown(await post()))
          .toMatchObject({ status: 200, replayed: true, body: expect.stringMatching(/^ab/) })
      },
      { mode },
    )
  })
}

for (const mode of modes) {
  test(`so does a handler that returns nothing, for which Fastify sends nothing once the client has left (${mode})`, () => {
    const entered = gate()
    const left = gate()
    let runs = 0
    return inRoom(
      (app, safe) =>
        around(app, safe, async (request, answer) => {
          runs += 1
          answer.code(202)
          request.raw.socket.once('close', () => left.open())
          entered.open()
          await left.opened
        }),
      async ({ port, post }) => {
        const client = wire(port)
        client.write(requestText('/orders', '{"total":1}'))
        await entered.opened
        client.hangUp()
        await expect.poll(async () => shown(await post())).toEqual({ status: 202, replayed: true, body: '' })
        expect(runs).toBe(1)
      },
      { mode },
    )
  })
}

test('events are never held back in lease mode, and not replayed', () => {
  const seen = gate()
  return inRoom(
    (app, safe) =>
      around(app, safe, (_, answer) => {
        answer.hijack()
        answer.raw.writeHead(200, { 'content-type': 'text/event-stream' })
        answer.raw.write('data: 1\n\n')
        void seen.opened.then(() => answer.raw.end('data: 2\n\n'))
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

const mebibyte = Buffer.alloc(1024 * 1024, 'x')

async function* mebibytes(count: number) {
  for (let sent = 0; sent < count; sent += 1) yield mebibyte
}

test('a large stream flows in lease mode and is not replayed; in transaction mode it is refused', async () => {
  for (const mode of modes) {
    await inRoom(
      (app, safe) => around(app, safe, async (_, answer) => answer.send(Readable.from(mebibytes(20)))),
      async ({ post }) => {
        const first = await post()
        if (mode === 'lease') {
          expect(first.body.length).toBe(20 * mebibyte.length)
          expect((await post()).body.toString()).toContain('NOT_REPLAYABLE')
        } else expect(first.status).toBe(500)
      },
      { mode },
    )
  }
})

test('a handler that returns its reply is compressed by what the application has', () =>
  inRoom(
    async (app, safe) => {
      await app.register(compress)
      app.post(
        '/orders',
        idempotent(safe, {}, () => reply(201, long())),
      )
    },
    async ({ post }) => {
      const first = await post('/orders', gzip)
      const again = await post('/orders', gzip)
      for (const got of [first, again]) expect(got.headers['content-encoding']).toBe('gzip')
      expect(again.replayed).toBe(true)
      expect(gunzipSync(again.body).equals(gunzipSync(first.body))).toBe(true)
      expect((await post()).body.equals(gunzipSync(first.body))).toBe(true)
    },
  ))
