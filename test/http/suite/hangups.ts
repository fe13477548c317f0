/** Clients that hang up, at any moment: neither the work nor its outcome depends on them (rule 8). */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Response } from 'express'
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../setup/until.js'
import { type ExpressModule, gate, modes, requestText, type Site, site, wire } from './site.js'

const thisFile = fileURLToPath(import.meta.url)

export function hangUpSuite(express: ExpressModule): void {
  describe('hanging up', () => {
    let at: Site | undefined
    afterEach(() => at?.close())

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

      test(`a pipelined request whose client hangs up is done all the same (${mode})`, async () => {
        const arrived = gate()
        let completed = 0
        at = await site(
          express,
          (app, safe) =>
            app.post('/x', idempotent(safe, { mode }), async (req, res) => {
              if (req.idempotency?.key === 'k2') arrived.open()
              else await new Promise((resume) => req.socket.once('close', resume))
              for (const piece of big) if (!res.write(piece)) await once(res, 'drain')
              res.end()
            }),
          { maxReplyBytes: 10_000_000 },
        )
        at.safe.on('completed', () => {
          completed += 1
        })
        const client = wire(at.port)
        client.write(requestText('/x') + requestText('/x', '', { 'idempotency-key': 'k2' }))
        await arrived.opened
        client.hangUp()
        await until(() => completed === 2, 'both outcomes')
        const answer = await at.send('/x', { key: 'k2', headers: { 'content-type': 'application/json' } })
        expect({ replayed: answer.replayed, length: answer.text.length }).toEqual({
          replayed: true,
          length: 200 * 16_384,
        })
      })

      test(`a source that ends with the connection: what was done is not done again unseen (${mode})`, async () => {
        let runs = 0
        let effects = 0
        const arrived = gate()
        at = await site(express, (app, safe) =>
          app.post('/x', idempotent(safe, { mode }), async (req, res) => {
            runs += 1
            req.idempotency?.tx?.defer(() => {
              effects += 1
            })
            if (runs > 1) return res.sendFile(thisFile)
            const source = new Readable({ read: () => undefined })
            source.push('a piece')
            req.socket.once('close', () => source.destroy())
            source.pipe(res)
            arrived.open()
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

      test(`a file that is sent when its client has left is kept whole (${mode})`, async () => {
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
        const completed = gate()
        at.safe.on('completed', () => completed.open())
        const client = wire(at.port)
        client.write(requestText('/x'))
        await arrived.opened
        client.hangUp()
        await completed.opened
        const again = await at.send('/x', { headers: { 'content-type': 'application/json' } })
        expect({ replayed: again.replayed, text: again.text, runs, effects }).toEqual({
          replayed: true,
          text: readFileSync(thisFile, 'utf8'),
          runs: 1,
          effects: mode === 'lease' ? 0 : 1,
        })
      })
    }
  })
}
