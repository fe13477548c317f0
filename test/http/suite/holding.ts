/** When a reply leaves: not before its outcome is durable, whoever hangs up meanwhile (rules 8, 12; F018, F019, F051, F054, F103). */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { RequestHandler, Response } from 'express'
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

const thisFile = fileURLToPath(import.meta.url)

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

    const big = Array.from({ length: 200 }, () => 'x'.repeat(16_384))
    /** Told at the end, as without us, that the client is gone: the rest of a handler may want to know. */
    const toldLate = (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
    }
    /** Ways to answer a client that is gone: each gets a promise that resolves once it is. */
    const afterHangUp: Record<string, (res: Response, gone: Promise<void>) => unknown> = {
      'one piece': async (res, gone) => {
        await gone
        res.status(201).json({ done: true })
      },
      'writes that wait for their callbacks': async (res, gone) => {
        res.write('a')
        await gone
        for (const piece of ['b', 'c']) await new Promise((resume) => res.write(piece, resume))
        res.end('d')
      },
      'a large write that waits for its callback': async (res, gone) => {
        await new Promise<void>((resume, fail) =>
          res.write(big.join(''), (error) => (error ? fail(error) : resume())),
        )
        await gone
        res.end()
      },
      'a loop that looks whether somebody is there': async (res, gone) => {
        await gone
        for (const piece of big) if (!res.destroyed && !res.closed) res.write(piece)
        res.end()
      },
      'writes that wait for drain': async (res, gone) => {
        for (const piece of big) if (!res.write(piece)) await Promise.all([once(res, 'drain'), gone])
        res.end()
      },
      'a pipeline under way': async (res, gone) => {
        async function* pieces() {
          yield* big.slice(0, 100)
          await gone
          yield* big.slice(100)
        }
        await pipeline(Readable.from(pieces()), res).catch(toldLate)
      },
      'a pipeline that starts later': async (res, gone) => {
        await gone
        await pipeline(Readable.from(big), res).catch(toldLate)
      },
      'a pipe that starts later': async (res, gone) => {
        await gone
        Readable.from(big).pipe(res)
      },
    }

    for (const mode of modes) {
      for (const [name, answer] of Object.entries(afterHangUp)) {
        test(`a client that hangs up neither cancels the work nor its outcome: ${name} (${mode})`, async () => {
          let runs = 0
          let closes = 0
          const arrived = gate()
          at = await site(
            express,
            (app, safe) =>
              app.post('/x', idempotent(safe, { mode }), (req, res) => {
                runs += 1
                res.on('close', () => {
                  closes += 1
                })
                const gone = new Promise<void>((resume) =>
                  req.socket.once('close', () => setImmediate(resume)),
                )
                arrived.open()
                return answer(res, gone) as never
              }),
            { maxReplyBytes: 10_000_000 },
          )
          const { safe } = at
          const settled = gate()
          for (const event of ['completed', 'released'] as const) safe.on(event, () => settled.open())
          const client = wire(at.port)
          client.socket.pause()
          client.write(requestText('/x'))
          await arrived.opened
          client.hangUp()
          await settled.opened
          await until(() => closes === 1, 'the close that was kept from the handler')
          const again = await at.send('/x', { headers: { 'content-type': 'application/json' } })
          expect({ replayed: again.replayed, runs }).toEqual({ replayed: true, runs: 1 })
          const expected = { 'one piece': '{"done":true}', 'writes that wait for their callbacks': 'abcd' }
          expect(again.text).toBe((expected as Record<string, string>)[name] ?? big.join(''))
        })
      }

      test(`a file whose sending ends with the connection: what was done is not done again unseen (${mode})`, async () => {
        let runs = 0
        let effects = 0
        const arrived = gate()
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), async (req, res) => {
            runs += 1
            req.idempotency?.tx?.defer(() => {
              effects += 1
            })
            if (runs === 1) {
              arrived.open()
              await new Promise((resume) => req.socket.once('close', () => setImmediate(resume)))
            }
            res.sendFile(thisFile)
          }),
        )
        const settled = gate()
        for (const event of ['completed', 'released'] as const) at.safe.on(event, () => settled.open())
        const client = wire(at.port)
        client.write(requestText('/x'))
        await arrived.opened
        client.hangUp()
        await settled.opened
        const again = await at.send('/x', { headers: { 'content-type': 'application/json' } })
        if (mode === 'lease')
          expect(again.json()).toMatchObject({ code: 'NOT_REPLAYABLE', originalStatus: 200 })
        else expect({ status: again.status, runs, effects }).toEqual({ status: 200, runs: 2, effects: 1 })
      })

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
