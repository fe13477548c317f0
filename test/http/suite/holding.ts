import { pipeline, Readable } from 'node:stream'
import type { NextFunction, RequestHandler, Response } from 'express'
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { until } from '../../setup/until.js'
import {
  type ExpressModule,
  gate,
  gatedStore,
  modes,
  requestText,
  type Site,
  site,
  storeWith,
  wire,
} from './site.js'

export function holdingSuite(express: ExpressModule): void {
  describe('holding', () => {
    let at: Site | undefined
    afterEach(() => at?.close())

    /** What a client has seen when the outcome is about to be written, and all of it afterwards. */
    async function heldAndAll(mode: 'transaction' | 'lease', answer: RequestHandler) {
      const { store, asked, open } = gatedStore()
      at = await site(
        express,
        (app, safe) => {
          app.post('/x', idempotent(safe, { mode }), answer)
          app.post('/barrier', (_req, res) => void res.end())
        },
        { store },
      )
      const client = wire(at.port)
      client.write(requestText('/x', '', { connection: 'close' }))
      await asked
      // What was sent before has arrived once a later exchange is through.
      for (let round = 0; round < 3; round += 1) await at.send('/barrier')
      const held = client.received()
      open()
      await client.closed
      return { held, all: client.received() }
    }

    const written: RequestHandler = async (_req, res) => {
      res.write('first')
      await new Promise((resume) => setImmediate(resume))
      res.end('last')
    }
    const announced: RequestHandler = (_req, res) => {
      res.setHeader('content-length', '9')
      res.write('first')
      res.write('last')
      res.end()
    }

    test('transaction mode holds everything, headers included, until the commit', async () => {
      const answers: RequestHandler[] = [written, announced, (_req, res) => void res.json({ last: 1 })]
      answers.push((_req, res) => {
        res.flushHeaders()
        res.end('last')
      })
      for (const answer of answers) {
        const { held, all } = await heldAndAll('transaction', answer)
        expect(held).toBe('')
        expect(all).toContain('last')
        await at?.close()
      }
    })

    test('lease mode holds the last byte where a length was announced', async () => {
      const { held, all } = await heldAndAll('lease', announced)
      expect(held).toMatch(/\r\n\r\nfirstlas$/)
      expect(all).toMatch(/\r\n\r\nfirstlast$/)
    })

    test('lease mode holds the end of a chunked reply, and all of one given in one piece', async () => {
      const chunked = await heldAndAll('lease', written)
      expect(chunked.held).toMatch(/5\r\nfirst\r\n$/)
      expect(chunked.all).toMatch(/4\r\nlast\r\n0\r\n\r\n$/)
      await at?.close()
      const whole = await heldAndAll('lease', (_req, res) => void res.json({ last: 1 }))
      expect(whole.held).toBe('')
      expect(whole.all).toMatch(/{"last":1}$/)
    })

    test('lease mode lets flushed headers go and holds the end', async () => {
      const { held, all } = await heldAndAll('lease', (_req, res) => {
        res.flushHeaders()
        res.end('last')
      })
      expect(held).toMatch(/^HTTP\/1.1 200 OK\r\n(.+\r\n)+\r\n$/)
      expect(all).toMatch(/last\r\n0\r\n\r\n$/)
    })

    const mebibyte = Buffer.alloc(1024 * 1024, 'x')

    /** Feeds without end, and counts how much was taken. */
    function endless() {
      const fed = { mebibytes: 0, source: new Readable() }
      fed.source = new Readable({
        highWaterMark: mebibyte.length,
        read() {
          fed.mebibytes += 1
          this.push(mebibyte)
        },
      })
      return fed
    }

    /** Ways to write more than there is room for. Each tells once it has stopped. */
    const feeders: Record<string, (res: Response, next: NextFunction, stopped: () => void) => () => number> =
      {
        'a pipe': (res, _next, stopped) => {
          const fed = endless()
          fed.source.on('close', stopped).pipe(res)
          return () => fed.mebibytes
        },
        'a pipeline whose error goes to next': (res, next, stopped) => {
          const fed = endless()
          pipeline(fed.source, res, (error) => {
            stopped()
            next(error)
          })
          return () => fed.mebibytes
        },
        'a loop that waits for drain': (res, _next, stopped) => {
          let count = 0
          res.on('close', stopped)
          const go = () => {
            do count += 1
            while (res.write(mebibyte))
            res.once('drain', go)
          }
          go()
          return () => count
        },
        'a chain of callbacks': (res, _next, stopped) => {
          let count = 0
          const go = (error?: Error | null) => {
            if (error) return stopped()
            count += 1
            res.write(mebibyte, go)
          }
          go()
          return () => count
        },
      }

    for (const [way, feed] of Object.entries(feeders)) {
      test(`transaction mode ends a reply that is too large to be held, and stops what feeds it (${way})`, async () => {
        const stopped = gate()
        let runs = 0
        let fed = () => 0
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe), (req, res, next) => {
            runs += 1
            req.idempotency?.tx.defer(() => expect.fail('the work took effect'))
            fed = feed(res, next, () => stopped.open())
          }),
        )
        for (let round = 1; round <= 2; round += 1) {
          const answer = await at.send('/x')
          expect({ status: answer.status, code: answer.json().code, runs }).toEqual({
            status: 500,
            code: 'REPLY_TOO_LARGE',
            runs: round,
          })
        }
        await stopped.opened
        expect(fed()).toBeLessThan(24)
      })
    }

    test('past the point of no return, a reply too large to be held is kept as the failure that it is', async () => {
      at = await site(express, (app, safe) =>
        app.post('/x', idempotent(safe), (req, res) => {
          req.idempotency?.keepFailure()
          endless().source.pipe(res)
        }),
      )
      expect(await at.send('/x')).toMatchObject({ status: 500, replayed: false })
      expect(await at.send('/x')).toMatchObject({ status: 500, replayed: true })
    })

    test('lease mode streams more than may be held, and a reply in one piece is not counted', async () => {
      const large = Buffer.alloc(20 * 1024 * 1024, 'y')
      at = await site(express, (app, safe) => {
        app.post('/pieces', idempotent(safe, { mode: 'lease' }), (_req, res) => {
          for (let count = 0; count < 20; count += 1) res.write(mebibyte)
          res.end()
        })
        app.post('/piece', idempotent(safe), (_req, res) => void res.end(large))
      })
      expect((await at.send('/pieces')).bytes).toHaveLength(large.length)
      expect((await at.send('/piece', { key: 'k2' })).bytes.equals(large)).toBe(true)
      expect((await at.send('/piece', { key: 'k2' })).json().code).toBe('NOT_REPLAYABLE')
    })

    test('what goes beyond the length that was announced is not read as the next reply', async () => {
      at = await site(express, (app, safe) =>
        app.post('/x', idempotent(safe, { mode: 'lease' }), (_req, res) => {
          res.setHeader('content-length', '5')
          for (const piece of ['fir', 'st', 'HTTP/1.1 200 OK', ' and more']) res.write(piece)
          res.end()
        }),
      )
      const client = wire(at.port)
      client.write(requestText('/x', '', { connection: 'close' }))
      await client.closed
      expect(client.received()).toMatch(/\r\n\r\nfirst$/)
    })

    test('an outcome that cannot be written is never answered as a success: 503, or a reply cut short', async () => {
      const down = () => Promise.reject(new Error('the disk is full'))
      const store = storeWith(() => ({ complete: down, renew: down }))
      at = await site(
        express,
        (app, safe) => {
          app.post('/around', idempotent(safe), (_req, res) => void res.status(201).json({ done: true }))
          app.post(
            '/replies',
            idempotent(safe, { mode: 'lease' }, () => reply(201, { done: true })),
          )
          app.post('/written', idempotent(safe), written)
        },
        { store, mode: 'lease', leaseMs: 60 },
      )
      for (const path of ['/around', '/replies']) {
        const answer = await at.send(path, { key: path })
        expect(answer.status).toBe(503)
        expect(answer.json().code).toBe('STORE_UNAVAILABLE')
        expect(answer.headers.get('retry-after')).toMatch(/^[1-9]/)
        expect(answer.text).not.toContain('disk')
      }
      await expect(at.send('/written', { key: 'w' })).rejects.toThrow()
    })

    test('a stream of events is not held back, but for its end, and is not replayable', async () => {
      const go = gate()
      at = await site(express, (app, safe) =>
        app.post('/x', idempotent(safe, { mode: 'lease' }), async (_req, res) => {
          res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
          res.write('data: 1\n\n')
          await go.opened
          res.end('data: 2\n\n')
        }),
      )
      const client = wire(at.port)
      client.write(requestText('/x', '', { connection: 'close' }))
      await client.sees('data: 1')
      go.open()
      await client.closed
      expect(client.received()).toMatch(/data: 2\n\n\r\n0\r\n\r\n$/)
      expect((await at.send('/x', { headers: { 'content-type': 'application/json' } })).json()).toMatchObject(
        {
          code: 'NOT_REPLAYABLE',
          originalStatus: 200,
        },
      )
    })

    for (const mode of modes) {
      test(`a handler that breaks its answer off has failed: the key is free (${mode})`, async () => {
        let runs = 0
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), (_req, res) => {
            runs += 1
            if (runs > 1) return void res.end('whole')
            res.write('part')
            res.destroy()
          }),
        )
        const released = gate()
        at.safe.on('released', () => released.open())
        await expect(at.send('/x')).rejects.toThrow()
        await released.opened
        expect(await at.send('/x')).toMatchObject({ text: 'whole', replayed: false })
        expect(at.errors).toEqual([])
      })

      test(`a handler that throws after a part of its answer has failed: the key is free (${mode})`, async () => {
        let runs = 0
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), (_req, res) => {
            runs += 1
            if (runs > 1) return void res.end('whole')
            res.write('part')
            throw new Error('in the middle')
          }),
        )
        const released = gate()
        at.safe.on('released', () => released.open())
        await expect(at.send('/x')).rejects.toThrow()
        await released.opened
        expect((await at.send('/x')).text).toBe('whole')
        expect(at.errors).toHaveLength(1)
      })

      test(`a handler that never answers is over after its time; what it says later is ignored (${mode})`, async () => {
        const go = gate()
        const over = gate<unknown>()
        at = await site(
          express,
          (app, safe) =>
            app.post('/x', idempotent(safe, { mode }), async (_req, res) => {
              await go.opened
              res.write('late')
              res.end('r', () => over.open(undefined))
            }),
          { workTimeoutMs: 40, leaseMs: 40 },
        )
        const answer = await at.send('/x')
        expect(answer.status).toBe(503)
        expect(answer.headers.get('connection')).toBe('close')
        go.open()
        await over.opened
        expect(answer.text).not.toContain('late')
        expect(at.errors).toEqual([])
      })

      test(`end() twice, callbacks, and a write after the end are as Node has them (${mode})`, async () => {
        const seen: unknown[] = []
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), (_req, res) => {
            res.on('error', (error: NodeJS.ErrnoException) => seen.push(`event ${error.code}`))
            res.write('a', () => seen.push('written'))
            seen.push(res.headersSent)
            expect(() => res.writeHead(201)).toThrow(/after they are sent/)
            expect(() => res.write(5 as never)).toThrow(TypeError)
            res.end('b', 'utf8', () => seen.push('ended'))
            seen.push(res.writableEnded)
            res.end(() => seen.push('ended again'))
            res.write('c', (error) => seen.push(`write ${(error as NodeJS.ErrnoException | null)?.code}`))
          }),
        )
        expect((await at.send('/x')).text).toBe('ab')
        await until(() => seen.includes('ended again'), 'the callbacks')
        const late = 'ERR_STREAM_WRITE_AFTER_END'
        expect([...seen].sort()).toEqual(
          [true, true, 'ended', 'ended again', `event ${late}`, `write ${late}`, 'written'].sort(),
        )
        expect(await at.send('/x')).toMatchObject({ text: 'ab', replayed: true })
      })

      test(`early hints and trailers reach the first caller (${mode})`, async () => {
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), (_req, res) => {
            res.writeEarlyHints({ link: '</style.css>; rel=preload' })
            res.setHeader('Trailer', 'X-Sum')
            res.write('body')
            res.addTrailers({ 'X-Sum': '7' })
            res.end()
          }),
        )
        const client = wire(at.port)
        client.write(requestText('/x', '', { connection: 'close' }))
        await client.closed
        expect(client.received()).toContain('HTTP/1.1 103 Early Hints')
        expect(client.received()).toMatch(/4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n$/)
      })
    }
  })
}
