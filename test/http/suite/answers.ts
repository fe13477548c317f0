/** What is answered, however a handler says it, and that a replay is equal to it (rules 9, 11 and 12). */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import compression from 'compression'
import type { RequestHandler } from 'express'
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { type ExpressModule, modes, requestText, type Site, site, wire } from './site.js'

const bytes256 = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index))
const thisFile = fileURLToPath(import.meta.url)

/** Ways to answer, and the status each comes to. */
const ways: Record<string, { status: number; answer: RequestHandler }> = {
  'json of an object': { status: 200, answer: (_req, res) => void res.json({ b: 1, a: 2 }) },
  'json text that JSON.stringify would not write': {
    status: 201,
    answer: (_req, res) => void res.status(201).type('json').send('{"b":1.0,  "a":1e2}'),
  },
  'send of an object': { status: 202, answer: (_req, res) => void res.status(202).send({ a: 1 }) },
  'send of a text': { status: 200, answer: (_req, res) => void res.send('<p>ü</p>') },
  'send of a Buffer': { status: 200, answer: (_req, res) => void res.send(bytes256) },
  'jsonp with a callback': { status: 200, answer: (_req, res) => void res.jsonp({ a: 1 }) },
  'ten bytes': { status: 200, answer: (_req, res) => void res.send('0123456789') },
  'ten kilobytes': { status: 200, answer: (_req, res) => void res.send('0123456789'.repeat(1024)) },
  'end without a body': { status: 200, answer: (_req, res) => void res.end() },
  'end with a chunk': { status: 200, answer: (_req, res) => void res.end('bye') },
  'end in latin1': {
    status: 200,
    answer: (_req, res) => void res.type('text/csv; charset=latin1').end('\u00fc;\u00e4', 'latin1'),
  },
  'end with a Uint8Array': { status: 200, answer: (_req, res) => void res.end(Uint8Array.of(0, 255, 128)) },
  'no type at all': { status: 200, answer: (_req, res) => void res.end(bytes256) },
  'writes in pieces': {
    status: 200,
    answer: (_req, res) => {
      res.write('61', 'hex')
      res.write(Buffer.from('b'))
      res.write(Uint8Array.of(99))
      res.end('d')
    },
  },
  'writes up to an announced length': {
    status: 200,
    answer: (_req, res) => {
      res.setHeader('Content-Length', '4')
      res.write('ab')
      res.write('cd')
      res.end()
    },
  },
  'writeHead with a reason and an object': {
    status: 201,
    answer: (_req, res) => {
      res.writeHead(201, 'Made', { 'Content-Type': 'application/vnd.x+json', Location: '/x/1' })
      res.end('{}')
    },
  },
  'writeHead with a list': {
    status: 203,
    answer: (_req, res) => {
      res.writeHead(203, ['Content-Type', 'text/x', 'Link', '<a>; rel="a"', 'Link', '<b>; rel="b"'])
      res.end('list')
    },
  },
  pipe: { status: 200, answer: (_req, res) => void Readable.from(['p', 'i', 'pe']).pipe(res) },
  pipeline: {
    status: 200,
    answer: async (_req, res) => pipeline(Readable.from([bytes256, bytes256]), res),
  },
  sendFile: { status: 200, answer: (_req, res) => void res.sendFile(thisFile) },
  redirect: { status: 303, answer: (_req, res) => void res.redirect(303, '/elsewhere') },
  'no content': { status: 204, answer: (_req, res) => void res.status(204).send('dropped') },
  'reset content': { status: 205, answer: (_req, res) => void res.sendStatus(205) },
  sendStatus: { status: 406, answer: (_req, res) => void res.sendStatus(406) },
  'a chosen 422': { status: 422, answer: (_req, res) => void res.status(422).json({ no: 'way' }) },
}

/** What has to be equal between a first answer and its replay. */
function comparable(headers: Headers): Record<string, string> {
  const leftOut = [
    'date',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'content-length',
    'idempotent-replayed',
  ]
  // Of sendFile, about ranges: a replay is never partial.
  return Object.fromEntries([...headers].filter(([name]) => ![...leftOut, 'accept-ranges'].includes(name)))
}

export function answerSuite(express: ExpressModule): void {
  describe('answers', () => {
    let at: Site | undefined
    afterEach(() => at?.close())

    for (const mode of modes) {
      for (const [name, { status, answer }] of Object.entries(ways)) {
        test(`a replay equals the first answer, which ran once: ${name} (${mode})`, async () => {
          let runs = 0
          at = await site(express, (app, safe) => {
            app.post('/x', idempotent(safe, { mode }), (req, res, next) => {
              runs += 1
              return answer(req, res, next)
            })
          })
          const path = name.startsWith('jsonp') ? '/x?callback=cb' : '/x'
          const first = await at.send(path)
          expect({ status: first.status, replayed: first.replayed }).toEqual({ status, replayed: false })
          const again = await at.send(path)
          expect({ status: again.status, replayed: again.replayed }).toEqual({ status, replayed: true })
          expect(again.bytes.equals(first.bytes)).toBe(true)
          expect(comparable(again.headers)).toEqual(comparable(first.headers))
          expect(again.headers.has('transfer-encoding')).toBe(false)
          if (status !== 204) expect(again.headers.get('content-length')).toBe(String(first.bytes.length))
          expect(runs).toBe(1)
        })
      }

      test(`every byte value comes through a handler that returns a reply (${mode})`, async () => {
        at = await site(express, (app, safe) => {
          app.post(
            '/x',
            idempotent(safe, { mode } as { mode: 'lease' }, () => reply(200, bytes256, { etag: '"1"' })),
          )
          app.post(
            '/none',
            idempotent(safe, { mode } as { mode: 'lease' }, () => reply(204)),
          )
        })
        for (const replayed of [false, true]) {
          const answer = await at.send('/x')
          expect(answer.bytes.equals(bytes256)).toBe(true)
          expect(answer.headers.get('content-type')).toBe('application/octet-stream')
          expect({ etag: answer.headers.get('etag'), replayed: answer.replayed }).toEqual({
            etag: '"1"',
            replayed,
          })
          const none = await at.send('/none', { key: 'none' })
          expect({ status: none.status, replayed: none.replayed }).toEqual({ status: 204, replayed })
        }
      })

      test(`a cookie reaches the first caller only; the marker is never stored (${mode})`, async () => {
        at = await site(express, (app, safe) => {
          app.use((req, res, next) => {
            if (req.get('x-new') !== undefined) res.cookie('by', 'others')
            next()
          })
          app.post('/around', idempotent(safe, { mode, replayHeaders: ['X-Order'] }), (_req, res) => {
            res.cookie('session', 's').append('set-cookie', 'other=1').set({ 'x-order': '7', 'x-trace': 't' })
            res.set('Idempotent-Replayed', 'forged').json({})
          })
          app.post(
            '/replies',
            idempotent(safe, { mode, replayHeaders: ['X-Order'] } as { mode: 'lease' }, () =>
              reply(
                200,
                {},
                { 'set-cookie': ['a=1', 'b=2'], 'x-order': 7, 'x-trace': 't', 'idempotent-replayed': 'x' },
              ),
            ),
          )
        })
        for (const path of ['/around', '/replies']) {
          const first = await at.send(path, { key: path, headers: { 'x-new': '1' } })
          expect(first.headers.getSetCookie()).toHaveLength(3)
          expect(first.headers.get('x-trace')).toBe('t')
          expect(first.headers.get('idempotent-replayed')).toBeNull()
          const again = await at.send(path, { key: path })
          expect(again.headers.getSetCookie()).toEqual([])
          expect(again.headers.get('x-trace')).toBeNull()
          expect(again.headers.get('x-order')).toBe('7')
          expect(again.headers.get('idempotent-replayed')).toBe('true')
        }
      })

      test(`a reply above maxReplyBytes reaches its first caller whole and is not replayable (${mode})`, async () => {
        let runs = 0
        const big = randomBytes(100_000).toString('hex')
        at = await site(express, (app, safe) => {
          app.post('/around', idempotent(safe, { mode, maxReplyBytes: 1000 }), (_req, res) => {
            runs += 1
            res.status(201)
            Readable.from([big.slice(0, 50_000), big.slice(50_000)]).pipe(res)
          })
          app.post(
            '/replies',
            idempotent(safe, { mode, maxReplyBytes: 1000 } as { mode: 'lease' }, () => {
              runs += 1
              return reply(201, big)
            }),
          )
        })
        for (const path of ['/around', '/replies']) {
          const first = await at.send(path, { key: path })
          expect({ status: first.status, same: first.text === big }).toEqual({ status: 201, same: true })
          const again = await at.send(path, { key: path })
          expect(again.status).toBe(409)
          expect(again.json()).toMatchObject({ code: 'NOT_REPLAYABLE', originalStatus: 201 })
        }
        expect(runs).toBe(2)
      })

      for (const place of ['before', 'after'] as const) {
        test(`compression ${place} us: each caller gets what it can read (${mode})`, async () => {
          let runs = 0
          const text = 'compress me. '.repeat(1000)
          const squeeze = compression({ threshold: 0 })
          at = await site(express, (app, safe) => {
            const own = idempotent(safe, { mode }) as RequestHandler
            const answer: RequestHandler = (_req, res) => {
              runs += 1
              res.type('text').send(text)
            }
            app.post('/x', place === 'before' ? [squeeze, own, answer] : [own, squeeze, answer])
          })
          const ask = async (coding: string) => {
            const client = wire(at?.port ?? 0)
            client.write(requestText('/x', '', { 'accept-encoding': coding, connection: 'close' }))
            await client.closed
            return split(client.received())
          }
          for (const coding of ['gzip', 'gzip', 'identity', 'br;q=0, gzip;q=0', 'gzip']) {
            const { head, body } = await ask(coding)
            const gzipped = coding === 'gzip'
            expect(/content-encoding: gzip/i.test(head)).toBe(gzipped)
            expect((gzipped ? gunzipSync(body) : body).toString()).toBe(text)
          }
          expect(runs).toBe(1)
        })
      }
    }

    test('a coded reply of which nobody can take the coding off is given as it is', async () => {
      const coded = gzipSync('x')
      at = await site(express, (app, safe) => {
        app.post('/x', idempotent(safe), (_req, res) => {
          res.setHeader('content-encoding', 'zstd')
          res.end(coded)
        })
      })
      const client = wire(at.port)
      client.write(requestText('/x', '', { connection: 'close' }))
      await client.closed
      const again = wire(at.port)
      again.write(requestText('/x', '', { connection: 'close' }))
      await again.closed
      expect(split(again.received()).body.equals(coded)).toBe(true)
      expect(again.received()).toMatch(/content-encoding: zstd/i)
    })

    test('a coding is taken off up to 16 times maxReplyBytes; a larger body is given as it is stored', async () => {
      const plain = (length: number) => Buffer.alloc(length, 'x')
      at = await site(
        express,
        (app, safe) =>
          app.post('/:length', idempotent(safe), (req, res) => {
            res.setHeader('content-encoding', 'gzip')
            res.end(gzipSync(plain(Number(req.params.length))))
          }),
        { maxReplyBytes: 1000 },
      )
      const ask = async (length: number) => {
        const client = wire(at?.port ?? 0)
        const headers = {
          'idempotency-key': `k${length}`,
          'accept-encoding': 'identity',
          connection: 'close',
        }
        client.write(requestText(`/${length}`, '', headers))
        await client.closed
        return split(client.received())
      }
      for (const length of [16_000, 16_001]) {
        await ask(length)
        const { head, body } = await ask(length)
        const coded = length > 16_000
        expect(head).toContain('Idempotent-Replayed: true')
        expect(/content-encoding: gzip/i.test(head)).toBe(coded)
        expect((coded ? gunzipSync(body) : body).equals(plain(length))).toBe(true)
      }
    })

    test('a 304 is never stored as an answer', async () => {
      let runs = 0
      at = await site(express, (app, safe) => {
        app.post('/x', idempotent(safe), (_req, res) => {
          runs += 1
          res.status(304).end()
        })
      })
      expect((await at.send('/x')).status).toBe(304)
      expect((await at.send('/x')).json()).toMatchObject({ code: 'NOT_REPLAYABLE', originalStatus: 304 })
      expect(runs).toBe(1)
    })

    test('a conditional request is answered and replayed in full', async () => {
      at = await site(express, (app, safe) => {
        app.post('/x', idempotent(safe), (_req, res) => void res.set('ETag', '"v1"').json({ full: true }))
      })
      const headers = { 'if-none-match': '"v1"' }
      for (const replayed of [false, true]) {
        const answer = await at.send('/x', { headers })
        expect({ status: answer.status, body: answer.json(), replayed: answer.replayed }).toEqual({
          status: 200,
          body: { full: true },
          replayed,
        })
      }
    })

    test('a response is as it was once the answer is out', async () => {
      const seen: { own: string[]; listeners: number }[] = []
      const members = [
        'setHeader',
        'appendHeader',
        'removeHeader',
        'writeHead',
        'flushHeaders',
        'write',
        'end',
        'destroy',
        'emit',
        'headersSent',
        'writableEnded',
      ]
      at = await site(express, (app, safe) => {
        for (const mode of modes) {
          app.post(`/${mode}`, idempotent(safe, { mode }), (_req, res) => {
            const before = res.listenerCount('pipe')
            res.on('finish', () => {
              const own = members.filter((name) => Object.hasOwn(res, name))
              seen.push({ own, listeners: before - res.listenerCount('pipe') })
            })
            Readable.from(['x']).pipe(res)
          })
        }
      })
      for (const mode of modes) await at.send(`/${mode}`, { key: mode })
      // The one listener is ours while the handler runs; the source's own goes with it.
      expect(seen).toEqual(modes.map(() => ({ own: [], listeners: expect.any(Number) })))
      for (const { listeners } of seen) expect(listeners).toBeGreaterThanOrEqual(1)
    })
  })
}

function split(received: string): { head: string; body: Buffer } {
  const [head = '', ...rest] = received.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  if (!/transfer-encoding: chunked/i.test(head)) return { head, body: Buffer.from(body, 'latin1') }
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const end = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.slice(at, end), 16)
    if (!(size > 0)) return { head, body: Buffer.concat(chunks) }
    chunks.push(Buffer.from(body.slice(end + 2, end + 2 + size), 'latin1'))
    at = end + 4 + size
  }
}
