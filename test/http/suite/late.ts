/** What is visible before the outcome is durable, and what comes behind the answer (rules 8 and 9). */
import type { RequestHandler } from 'express'
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { type ExpressModule, gate, gatedStore, modes, requestText, type Site, site, wire } from './site.js'

const sent = { code: 'ERR_HTTP_HEADERS_SENT' }

/** Answers of which a client may take the beginning for the whole. */
const endless: Record<string, { version: '1.0' | '1.1'; answer: RequestHandler; all: RegExp }> = {
  'pieces for HTTP/1.0': {
    version: '1.0',
    answer: (_req, res) => {
      res.status(201).write('one')
      res.write('two')
      res.end()
    },
    all: /^HTTP\/1.1 201 (?!.*transfer-encoding).*\r\n\r\nonetwo$/is,
  },
  'flushed headers for HTTP/1.0': {
    version: '1.0',
    answer: (_req, res) => {
      res.status(201).flushHeaders()
      res.end('one')
    },
    all: /^HTTP\/1.1 201 .*\r\n\r\none$/s,
  },
  'pieces without chunks': {
    version: '1.1',
    answer: (_req, res) => {
      res.removeHeader('transfer-encoding')
      res.status(201).write('one')
      res.end()
    },
    all: /^HTTP\/1.1 201 (?!.*transfer-encoding).*\r\n\r\none$/is,
  },
  'a flushed 204': {
    version: '1.1',
    answer: (_req, res) => {
      res.status(204).flushHeaders()
      res.end()
    },
    all: /^HTTP\/1.1 204 .*\r\n\r\n$/s,
  },
  'a 204 that is written to': {
    version: '1.1',
    answer: (_req, res) => {
      res.status(204).write('nothing')
      res.end()
    },
    all: /^HTTP\/1.1 204 .*\r\n\r\n$/s,
  },
  'flushed headers that announce nothing': {
    version: '1.1',
    answer: (_req, res) => {
      res.status(201).set('content-length', '0').flushHeaders()
      res.end()
    },
    all: /^HTTP\/1.1 201 .*\r\n\r\n$/s,
  },
}

export function lateSuite(express: ExpressModule): void {
  describe('behind the answer', () => {
    let at: Site | undefined
    afterEach(() => at?.close())

    for (const [name, { version, answer, all }] of Object.entries(endless)) {
      test(`lease mode shows nothing that could be taken for the whole answer: ${name}`, async () => {
        const { store, asked, open } = gatedStore()
        at = await site(
          express,
          (app, safe) => {
            app.post('/x', idempotent(safe, { mode: 'lease' }), answer)
            app.post('/barrier', (_req, res) => void res.end())
          },
          { store },
        )
        const client = wire(at.port)
        client.write(requestText('/x', '', { connection: 'close' }).replace('HTTP/1.1', `HTTP/${version}`))
        await asked
        for (let round = 0; round < 3; round += 1) await at.send('/barrier')
        expect(client.received()).toBe('')
        open()
        await client.closed
        expect(client.received()).toMatch(all)
      })
    }

    test('events flow for HTTP/1.0 too, and so does a body beyond what may wait, but for its last byte', async () => {
      const go = gate()
      const mebibyte = Buffer.alloc(1024 * 1024, 'x')
      at = await site(express, (app, safe) => {
        app.post('/events', idempotent(safe, { mode: 'lease' }), async (_req, res) => {
          res.type('text/event-stream').write('data: 1\n\n')
          await go.opened
          res.end()
        })
        app.post('/large', idempotent(safe, { mode: 'lease' }), (_req, res) => {
          for (let count = 0; count < 20; count += 1) res.write(mebibyte)
          res.end('end')
        })
      })
      const clients = ['/events', '/large'].map((path) => {
        const client = wire(at?.port ?? 0)
        client.write(requestText(path, '', { 'idempotency-key': path }).replace('HTTP/1.1', 'HTTP/1.0'))
        return client
      })
      await clients[0]?.sees('data: 1')
      go.open()
      for (const client of clients) await client.closed
      const [, body = ''] = clients[1]?.received().split('\r\n\r\n') ?? []
      expect({ length: body.length, end: body.slice(-4) }).toEqual({
        length: 20 * 1024 * 1024 + 3,
        end: 'xend',
      })
    })

    for (const mode of modes) {
      test(`what is set behind the head reaches neither the first caller nor the record (${mode})`, async () => {
        const cookies = ['a=1']
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), (_req, res) => {
            res.writeHead(201, { 'content-type': 'text/plain', 'set-cookie': cookies })
            cookies.push('b=2')
            for (const change of [
              () => res.setHeader('location', '/later'),
              () => res.appendHeader('link', '<x>'),
              () => res.removeHeader('content-type'),
              () => res.writeHead(500),
            ])
              expect(change).toThrow(expect.objectContaining(sent))
            res.statusCode = 418
            res.end('made')
            res.statusCode = 500
            expect(() => res.setHeader('content-type', 'text/html')).toThrow(expect.objectContaining(sent))
          }),
        )
        for (const replayed of [false, true]) {
          const { status, headers, text, replayed: again } = await at.send('/x')
          expect({ status, text, replayed: again }).toEqual({ status: 201, text: 'made', replayed })
          expect([headers.get('content-type'), headers.get('location'), headers.get('link')]).toEqual([
            'text/plain',
            null,
            null,
          ])
          expect(headers.getSetCookie()).toEqual(replayed ? [] : ['a=1'])
        }
      })

      for (const when of ['at once', 'later'] as const) {
        test(`a second answer ${when} fails as it does without us, and the first one arrives (${mode})`, async () => {
          const { store, asked, open } = gatedStore()
          const failed = gate<unknown>()
          at = await site(
            express,
            (app, safe) => {
              app.post('/x', idempotent(safe, { mode }), async (_req, res, next) => {
                res.status(201).json({ id: 1 })
                if (when === 'later') await asked
                try {
                  res.status(500).json({ error: 'x' })
                } catch (error) {
                  // What Express does with it is end the connection: headers are sent.
                  next(error)
                  failed.open(error)
                }
              })
            },
            { store },
          )
          const first = at.send('/x')
          expect(await failed.opened).toMatchObject(sent)
          open()
          expect(await first).toMatchObject({ status: 201, text: '{"id":1}', replayed: false })
          expect(await at.send('/x')).toMatchObject({ status: 201, text: '{"id":1}', replayed: true })
        })
      }

      test(`writes behind the end, while the answer waits, harm nobody who does not listen (${mode})`, async () => {
        const { store, asked, open } = gatedStore()
        const told = gate<unknown>()
        at = await site(
          express,
          (app, safe) =>
            app.post('/x', idempotent(safe, { mode }), async (_req, res) => {
              res.end('first')
              await asked
              res.write('second', (error) => told.open(error))
              res.end('third')
            }),
          { store },
        )
        const first = at.send('/x')
        expect(await told.opened).toMatchObject({ code: 'ERR_STREAM_WRITE_AFTER_END' })
        open()
        expect((await first).text).toBe('first')
      })
    }
  })
}
