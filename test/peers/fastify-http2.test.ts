/** Fastify over HTTP/2, seen by a client of HTTP/2: many streams of one connection, what is cut off, and who leaves. */
import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import fastify, { type FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/fastify.js'
import { type Retrysafe, reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { gate } from '../http/suite/site.js'
import { type Mode, modes, random } from './fastify-room.js'

interface Got {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
  /** 0 where the stream came to its end. */
  readonly code: number
}

async function overHttp2(
  mode: Mode,
  build: (app: FastifyInstance, safe: Retrysafe<MemoryTx>) => unknown,
  body: (session: ClientHttp2Session) => Promise<void>,
): Promise<void> {
  const safe = retrysafe<MemoryTx>({ store: memory(), scope: 's', mode })
  const app = fastify({ http2: true }) as unknown as FastifyInstance
  await build(app, safe)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  session.on('error', () => undefined)
  try {
    await body(session)
  } finally {
    session.destroy()
    await app.close()
    await safe.close()
  }
}

function start(session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}, body = '{"total":1}') {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/orders',
    'idempotency-key': 'k1',
    'content-type': 'application/json',
    ...headers,
  })
  stream.end(body)
  return stream
}

async function send(session: ClientHttp2Session, headers?: OutgoingHttpHeaders, body?: string): Promise<Got> {
  const stream = start(session, headers, body)
  const pieces: Buffer[] = []
  let got: OutgoingHttpHeaders = {}
  stream.on('response', (head) => {
    got = head
  })
  stream.on('data', (piece: Buffer) => pieces.push(piece))
  // The code says it as well.
  stream.on('error', () => undefined)
  await new Promise((resolve) => stream.once('close', resolve))
  return {
    status: Number(got[':status'] ?? 0),
    headers: got,
    body: Buffer.concat(pieces),
    code: stream.rstCode ?? 0,
  }
}

const shown = ({ status, headers, body, code }: Got) => ({
  status,
  body: body.toString(),
  code,
  replayed: headers['idempotent-replayed'] === 'true',
})

for (const mode of modes) {
  test(`50 streams of one connection take effect once (${mode})`, () => {
    let runs = 0
    return overHttp2(
      mode,
      async (app, safe) => {
        await app.register(idempotent(safe, { whileRunning: { waitMs: 5000 } }))
        app.post('/orders', async () => {
          runs += 1
          await new Promise((resolve) => setImmediate(resolve))
          return { id: random() }
        })
      },
      async (session) => {
        const got = await Promise.all(Array.from({ length: 50 }, () => send(session)))
        expect(new Set(got.map(({ body }) => body.toString())).size).toBe(1)
        expect(got.filter((one) => !shown(one).replayed)).toHaveLength(1)
        expect(runs).toBe(1)
      },
    )
  })

  test(`streams and large values arrive whole, and again (${mode})`, () =>
    overHttp2(
      mode,
      async (app, safe) => {
        await app.register(idempotent(safe))
        app.post('/orders', async (_, answer) => answer.send(Readable.from(['a'.repeat(100_000), random()])))
        app.post('/large', async (_, answer) =>
          answer.code(201).send({ text: 'x'.repeat(300_000), id: random() }),
        )
        app.post('/empty', async (_, answer) => answer.code(204).send())
      },
      async (session) => {
        for (const path of ['/orders', '/large', '/empty']) {
          const headers = { ':path': path, 'idempotency-key': path }
          const first = await send(session, headers)
          expect(first.code).toBe(0)
          expect(shown(await send(session, headers))).toEqual({ ...shown(first), replayed: true })
          expect((await send(session, headers, '{"total":2}')).status).toBe(422)
        }
      },
    ))

  test(`a reply that breaks off is no whole one for its client, and the retry runs again (${mode})`, () => {
    let runs = 0
    return overHttp2(
      mode,
      async (app, safe) => {
        await app.register(idempotent(safe))
        app.post('/orders', async (_, answer) => {
          runs += 1
          if (runs > 1) return { runs }
          async function* pieces() {
            yield 'a piece'
            await new Promise((resolve) => setImmediate(resolve))
            throw new Error('the disk is gone')
          }
          return answer.send(Readable.from(pieces()))
        })
      },
      async (session) => {
        expect((await send(session)).code).not.toBe(0)
        expect(shown(await send(session))).toMatchObject({ status: 200, body: '{"runs":2}', replayed: false })
      },
    )
  })

  test(`a client that cancels its stream changes nothing: the retry is a replay (${mode})`, () => {
    const entered = gate()
    const left = gate()
    let runs = 0
    return overHttp2(
      mode,
      async (app, safe) => {
        await app.register(idempotent(safe))
        app.post('/orders', async (request, answer) => {
          runs += 1
          request.raw.once('aborted', () => left.open())
          entered.open()
          await left.opened
          return answer.send(Readable.from(['a'.repeat(100_000), random()]))
        })
      },
      async (session) => {
        const stream = start(session)
        stream.on('error', () => undefined)
        await entered.opened
        stream.close(constants.NGHTTP2_CANCEL)
        await expect
          .poll(async () => shown(await send(session)))
          .toMatchObject({ status: 200, replayed: true })
        expect(runs).toBe(1)
      },
    )
  })
}

test('a body without a length counts and is read whole, by us and behind us', () =>
  overHttp2(
    'transaction',
    async (app, safe) => {
      app.addContentTypeParser('*', (_request, _payload, done) => done(null))
      app.post(
        '/replies',
        idempotent(safe, {}, ({ body }) => reply(201, { length: body.length })),
      )
      await app.register(async (scope) => {
        await scope.register(idempotent(safe))
        scope.post('/orders', async ({ raw }) => {
          let length = 0
          for await (const chunk of raw) length += chunk.length
          return { length }
        })
      })
    },
    async (session) => {
      for (const path of ['/replies', '/orders']) {
        const headers = { ':path': path, 'idempotency-key': path, 'content-type': 'text/x-own' }
        expect((await send(session, headers, 'x'.repeat(200_000))).body.toString()).toBe('{"length":200000}')
        expect((await send(session, headers, 'y'.repeat(200_000))).status).toBe(422)
        const tooLong = { ...headers, 'idempotency-key': 'long' }
        expect((await send(session, tooLong, 'x'.repeat(2_000_000))).status).toBe(413)
      }
    },
  ))
