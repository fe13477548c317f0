/** What a request says: reading its body, handing it on, and comparing it (rule 15). */
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import multer from 'multer'
import { idempotent, rawBody } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { until } from '../../setup/until.js'
import { type ExpressModule, gate, requestText, type Site, site, storeWith, wire } from './site.js'

export function bodySuite(express: ExpressModule): void {
  describe('bodies', () => {
    let at: Site | undefined
    afterEach(() => at?.close())

    async function echo(before: 'kept' | 'parsed' | 'none', options: object = {}): Promise<Site> {
      return site(express, (app, safe) => {
        if (before === 'kept') app.use(express.json({ verify: rawBody }))
        if (before === 'parsed') app.use(express.json())
        app.post(
          '/x',
          idempotent(safe, options, async ({ body }) => reply(201, { body })),
        )
      })
    }

    for (const before of ['kept', 'parsed', 'none'] as const) {
      test(`JSON counts by value and reaches the handler parsed (parser before us: ${before})`, async () => {
        at = await echo(before)
        const headers = { 'content-type': 'application/json' }
        const first = await at.send('/x', { body: '{"a":1,"b":[1,2]}', headers })
        expect(first.json()).toEqual({ body: { a: 1, b: [1, 2] } })
        const again = await at.send('/x', { body: '{ "b": [1, 2.0],\n"a": 1e0 }', headers })
        expect(again.replayed).toBe(true)
        expect(again.bytes.equals(first.bytes)).toBe(true)
        expect((await at.send('/x', { body: '{"a":1,"b":[2,1]}', headers })).status).toBe(422)
        expect((await at.send('/x', { body: '{"a":1}', headers })).json().code).toBe('KEY_REUSED')
      })
    }

    for (const before of ['kept', 'none'] as const) {
      test(`two numbers beyond 2^53 are two intents (parser before us: ${before})`, async () => {
        at = await echo(before)
        const headers = { 'content-type': 'application/json' }
        expect((await at.send('/x', { body: '{"id":9007199254740992}', headers })).status).toBe(201)
        expect((await at.send('/x', { body: '{"id":9007199254740993}', headers })).status).toBe(422)
      })
    }

    test('a plain Buffer at req.rawBody counts as the bytes', async () => {
      at = await site(express, (app, safe) => {
        app.use(express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) }))
        app.post(
          '/x',
          idempotent(safe, {}, async ({ body }) => reply(201, { body })),
        )
      })
      const headers = { 'content-type': 'application/json' }
      expect((await at.send('/x', { body: '{"id":9007199254740992}', headers })).status).toBe(201)
      expect((await at.send('/x', { body: '{"id":9007199254740993}', headers })).status).toBe(422)
    })

    test('malformed JSON is refused, nothing is claimed, and its text is not repeated', async () => {
      let asked = 0
      const store = storeWith((real) => ({
        transactions: {
          ...real.transactions,
          begin: (request) => {
            asked += 1
            return real.transactions.begin(request)
          },
        },
      }))
      at = await site(
        express,
        (app, safe) =>
          app.post(
            '/x',
            idempotent(safe, {}, () => reply(201)),
          ),
        { store },
      )
      const answer = await at.send('/x', {
        body: '{"secret": tops3cret}',
        headers: { 'content-type': 'application/json' },
      })
      expect(answer.json().code).toBe('BODY_INVALID')
      expect(answer.text).not.toContain('tops3cret')
      expect(asked).toBe(0)
    })

    test('parsers behind us see the whole body: JSON, a form, a pipe', async () => {
      at = await site(express, (app, safe) => {
        app.use(idempotent(safe, { mode: 'lease' }))
        app.post('/json', express.json({ limit: '1mb' }), (req, res) => res.json(req.body))
        app.post('/upload', multer({ storage: multer.memoryStorage() }).single('file'), (req, res) =>
          res.json({ fields: req.body, size: req.file?.size }),
        )
        app.post('/pipe', (req, res) => {
          req.pipe(res)
        })
      })
      const big = { text: 'ü'.repeat(200_000) }
      const post = (path: string, key: string) => at?.send(path, { key, json: big })
      expect((await post('/json', 'j'))?.json()).toEqual(big)
      expect((await post('/json', 'j'))?.replayed).toBe(true)
      expect((await post('/pipe', 'p'))?.json()).toEqual(big)
      const upload = (content: string) => {
        const form = new FormData()
        form.set('note', 'n')
        form.set('file', new Blob([content]), 'a.txt')
        return at?.send('/upload', { key: 'u', body: form })
      }
      const content = 'x'.repeat(300_000)
      expect((await upload(content))?.json()).toEqual({ fields: { note: 'n' }, size: 300_000 })
      // Its boundary is another one, its content is not.
      expect((await upload(content))?.replayed).toBe(true)
      expect((await upload(`${content}y`))?.status).toBe(422)
    })

    test('a form that multer parsed before us counts by its fields and files', async () => {
      at = await site(express, (app, safe) => {
        app.post('/x', multer().single('file'), idempotent(safe, {}), (_req, res) => {
          res.status(201).end()
        })
      })
      const upload = (content: string) => {
        const form = new FormData()
        form.set('file', new Blob([content]), 'a.txt')
        return at?.send('/x', { body: form })
      }
      expect((await upload('one'))?.status).toBe(201)
      expect((await upload('one'))?.replayed).toBe(true)
      expect((await upload('two'))?.status).toBe(422)
    })

    test('a body in small pieces, chunked, empty or behind Expect: 100-continue is read whole', async () => {
      at = await site(express, (app, safe) => {
        app.post('/x', idempotent(safe), express.text({ type: () => true }), (req, res) =>
          res.send(`got:${typeof req.body === 'string' ? req.body : ''};`),
        )
      })
      const { port } = at
      const talk = async (key: string, headers: Record<string, string>, pieces: string[]) => {
        const client = wire(port)
        const head = requestText('/x', '', { 'idempotency-key': key, connection: 'close', ...headers })
        client.write(headers['transfer-encoding'] ? head.replace('content-length: 0\r\n', '') : head)
        if (headers.expect) await client.sees('100 Continue')
        for (const piece of pieces) {
          client.write(piece)
          await new Promise((resume) => setImmediate(resume))
        }
        await client.closed
        return client.received()
      }
      const type = { 'content-type': 'text/plain' }
      expect(
        await talk('slow', { ...type, 'content-length': '6' }, ['a', 'b', 'c', 'd', 'e', 'f']),
      ).toContain('got:abcdef;')
      const chunked = { ...type, 'transfer-encoding': 'chunked' }
      expect(await talk('chunked', chunked, ['3\r\nabc\r\n', '3\r\ndef', '\r\n0\r\n\r\n'])).toContain(
        'got:abcdef;',
      )
      expect(await talk('nothing', chunked, ['0\r\n\r\n'])).toContain('got:;')
      expect(await talk('empty', type, [])).toContain('got:;')
      expect(
        await talk('expect', { ...type, 'content-length': '2', expect: '100-continue' }, ['ok']),
      ).toContain('got:ok;')
    })

    test('a body above maxBodyBytes is refused, announced or not, and the connection stays usable', async () => {
      let runs = 0
      at = await site(express, (app, safe) =>
        app.post(
          '/x',
          idempotent(safe, { maxBodyBytes: 10 }, () => {
            runs += 1
            return reply(201)
          }),
        ),
      )
      const client = wire(at.port)
      client.write(requestText('/x', `"${'x'.repeat(100_000)}"`))
      expect(await client.sees('BODY_TOO_LARGE')).toContain('413 ')
      const chunk = 'y'.repeat(5000)
      client.write(
        requestText('/x', '', { 'transfer-encoding': 'chunked' }).replace('content-length: 0\r\n', ''),
      )
      for (let index = 0; index < 20; index += 1) client.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
      client.write('0\r\n\r\n')
      await until(() => client.received().split('BODY_TOO_LARGE').length > 4, 'a second refusal')
      client.write(requestText('/x', '"fits"'))
      expect(await client.sees('201 Created')).toContain('201 Created')
      client.hangUp()
      expect(runs).toBe(1)
    })

    test('a client that hangs up before its body is complete claims nothing', async () => {
      let runs = 0
      let asked = 0
      const arrived = gate()
      const store = storeWith((real) => ({
        claim: (request) => {
          asked += 1
          return real.claim(request)
        },
      }))
      at = await site(
        express,
        (app, safe) => {
          app.use((_req, _res, next) => {
            next()
            arrived.open()
          })
          app.post('/x', idempotent(safe, { mode: 'lease' }), (_req, res) => {
            runs += 1
            res.end()
          })
        },
        { store },
      )
      const { port, errors } = at
      const client = wire(port)
      client.write(requestText('/x', '', { 'content-length': '100' }))
      client.write('{"a":')
      await arrived.opened
      client.hangUp()
      await until(() => errors.length === 1, 'the error handler')
      expect(errors[0]).toMatchObject({ status: 400, code: 'ECONNABORTED' })
      expect({ runs, asked }).toEqual({ runs: 0, asked: 0 })
    })

    test('a compressed body is the intent that it is without its coding, and is handed on as it was', async () => {
      at = await site(express, (app, safe) => {
        app.post(
          '/own',
          idempotent(safe, {}, async ({ body }) => reply(201, { body })),
        )
        app.post('/around', idempotent(safe), express.json(), (req, res) => res.json(req.body))
      })
      const coded = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
      for (const path of ['/own', '/around']) {
        const first = await at.send(path, { key: path, body: gzipSync('{"a":1}'), headers: coded })
        expect(first.text).toContain('{"a":1}')
        expect((await at.send(path, { key: path, json: { a: 1 } })).replayed).toBe(true)
        expect(
          (await at.send(path, { key: path, body: Buffer.from('{"a":1}'), headers: coded })).status,
        ).toBe(400)
      }
    })

    test('other bodies count by bytes and reach the handler as bytes', async () => {
      at = await site(express, (app, safe) =>
        app.post(
          '/x',
          idempotent(safe, {}, async ({ body }) =>
            reply(200, body instanceof Uint8Array ? body : 'no bytes'),
          ),
        ),
      )
      const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
      const headers = { 'content-type': 'application/octet-stream' }
      const first = await at.send('/x', { body: bytes, headers })
      expect(first.bytes.equals(bytes)).toBe(true)
      expect((await at.send('/x', { body: bytes, headers })).bytes.equals(bytes)).toBe(true)
      expect((await at.send('/x', { body: bytes.slice(1), headers })).status).toBe(422)
    })

    test('a body that somebody read and left nowhere is an error, never a silent replay', async () => {
      let runs = 0
      at = await site(express, (app, safe) => {
        app.use(async (req, _res, next) => {
          for await (const _ of Readable.from(req));
          next()
        })
        app.post(
          '/x',
          idempotent(safe, {}, () => {
            runs += 1
            return reply(201)
          }),
        )
      })
      const answer = await at.send('/x', { body: 'something', headers: { 'content-type': 'text/csv' } })
      expect(answer.status).toBe(500)
      expect(answer.json()).toMatchObject({ code: 'OPTION_INVALID' })
      expect(runs).toBe(0)
    })

    for (const parser of [true, false]) {
      test(`a form field carries the key, and a changed form is a new intent (parser: ${parser})`, async () => {
        let runs = 0
        at = await site(express, (app, safe) => {
          if (parser) app.use(express.urlencoded({ extended: false }))
          app.post(
            '/x',
            idempotent(safe, { formField: 'key' }, () => {
              runs += 1
              return reply(201, { runs })
            }),
          )
        })
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        const post = (body: string, key: string | null = null) => at?.send('/x', { key, body, headers })
        expect((await post('key=f1&total=5'))?.json()).toEqual({ runs: 1 })
        expect((await post('key=f1&total=5'))?.replayed).toBe(true)
        expect((await post('key=f1&total=6'))?.json()).toEqual({ runs: 2 })
        expect((await post('total=6'))?.json().code).toBe('KEY_REQUIRED')
        expect((await post('key=a&key=b'))?.json().code).toBe('KEY_INVALID')
        // A key in a form leaves room for the digest behind it: 222 of 255 characters.
        expect((await post(`key=${'k'.repeat(222)}`))?.json()).toEqual({ runs: 3 })
        expect((await post(`key=${'k'.repeat(223)}`))?.json()).toMatchObject({
          code: 'KEY_INVALID',
          detail: expect.stringContaining('222'),
        })
        // In quotes a key may hold a comma, in a form as in a header.
        const quoted = encodeURIComponent('"a,b\\"c\\""')
        expect((await post(`key=${quoted}&total=5`))?.json()).toEqual({ runs: 4 })
        expect((await post(`key=${quoted}&total=5`))?.replayed).toBe(true)
        expect((await post('key=a,b'))?.json().code).toBe('KEY_INVALID')
        // A header is the stronger word: then the form's own key is only a field.
        expect((await post('key=f1&total=5', 'header'))?.json()).toEqual({ runs: 5 })
        expect((await post('key=f1&total=6', 'header'))?.status).toBe(422)
      })
    }

    test('the fingerprint option decides what counts besides method and path', async () => {
      const fingerprint = (_req: unknown, body: { order: string; skip?: boolean }) =>
        body.skip ? undefined : body.order
      at = await site(express, (app, safe) => {
        app.post(
          '/x',
          idempotent(safe, { fingerprint }, () => reply(201)),
        )
        app.post(
          '/y',
          idempotent(safe, { fingerprint }, () => reply(201)),
        )
      })
      expect((await at.send('/x?try=1', { json: { order: 'o1', at: 1 } })).status).toBe(201)
      expect((await at.send('/x?try=2', { json: { order: 'o1', at: 2 } })).replayed).toBe(true)
      expect((await at.send('/x', { json: { order: 'o2', at: 2 } })).status).toBe(422)
      expect((await at.send('/y', { json: { order: 'o1', at: 1 } })).status).toBe(422)
      expect((await at.send('/x', { key: 'k2', json: { skip: true, a: 1 } })).status).toBe(201)
      expect((await at.send('/x', { key: 'k2', json: { skip: true, a: 2 } })).status).toBe(422)
    })
  })
}
