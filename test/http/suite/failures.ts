/** What fails, whose failure it is, and who hears of it (rules 8 and 17). */
import type { RequestHandler } from 'express'
import type { EventMap } from 'retrysafe'
import { idempotent } from 'retrysafe/express'
import { type MemoryStore, memory } from 'retrysafe/memory'
import { afterEach, describe, expect, test } from 'vitest'
import { fail } from '../../../dist/errors.js'
import { reply } from '../../../dist/http/reply.js'
import { recordDigest } from '../../../dist/key.js'
import { until } from '../../setup/until.js'
import { type Answer, type ExpressModule, gate, modes, type Site, site, storeWith } from './site.js'

export function failureSuite(express: ExpressModule): void {
  describe('failures', () => {
    let at: Site | undefined
    let runs = 0
    afterEach(async () => {
      await at?.close()
      runs = 0
    })

    const counted: RequestHandler = (_req, _res, next) => {
      runs += 1
      next()
    }

    for (const mode of modes) {
      test(`a handler that returns no reply fails clearly, and nothing is stored (${mode})`, async () => {
        at = await site(express, (app, safe) =>
          app.post(
            '/x',
            idempotent(safe, { mode } as { mode: 'lease' }, () => {
              runs += 1
              return (runs === 1 ? { status: 200 } : reply(200)) as ReturnType<typeof reply>
            }),
          ),
        )
        const failed = gate<EventMap['failed']>()
        at.safe.on('failed', failed.open)
        const first = await at.send('/x')
        expect(first.status).toBe(500)
        expect(first.json()).toMatchObject({ code: 'OPTION_INVALID' })
        // A stranger learns the code; what to mend is told inside.
        expect(first.text).not.toContain('reply(status, body)')
        const { code, error, record } = await failed.opened
        expect({ code, message: error.message }).toEqual({
          code: 'OPTION_INVALID',
          message: expect.stringContaining('reply(status, body)'),
        })
        expect(record).toBe(recordDigest('k1', 'caller'))
        expect(await at.send('/x')).toMatchObject({ status: 200, replayed: false })
      })

      test(`a store that cannot be reached is 503 with Retry-After, and the work does not run (${mode})`, async () => {
        const down = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1'))
        const store = storeWith((real) => ({
          claim: down,
          transactions: { ...real.transactions, begin: down },
        }))
        at = await site(
          express,
          (app, safe) => {
            app.post('/around', idempotent(safe, { mode }), counted)
            app.post(
              '/replies',
              idempotent(safe, { mode } as { mode: 'lease' }, () => {
                runs += 1
                return reply(200)
              }),
            )
          },
          { store },
        )
        for (const path of ['/around', '/replies']) {
          const answer = await at.send(path)
          expect(answer.status).toBe(503)
          expect(answer.headers.get('retry-after')).toBe('1')
          expect(answer.json().code).toBe('STORE_UNAVAILABLE')
          expect(answer.text).not.toContain('10.0.0.1')
        }
        expect({ runs, errors: at.errors }).toEqual({ runs: 0, errors: [] })
      })

      const callbacks = ['scope', 'fingerprint', 'keep', 'mayReplay'] as const
      for (const callback of callbacks) {
        for (const style of ['throws', 'rejects'] as const) {
          if (callback === 'keep' && style === 'rejects') continue
          test(`${callback} that ${style} reaches the error handler once, and the client gets an answer (${mode})`, async () => {
            const error = new Error('the user wrote this')
            const broken = () => {
              if (style === 'rejects') return Promise.reject(error)
              throw error
            }
            at = await site(express, (app, safe) => {
              const options = { mode, [callback]: broken } as { mode: 'lease' }
              app.post('/around', idempotent(safe, options), (_req, res) => void res.json({}))
              app.post(
                '/replies',
                idempotent(safe, options, () => reply(200, {})),
              )
            })
            for (const path of ['/around', '/replies']) {
              const failing = callback === 'mayReplay' ? 2 : 1
              const answers: Answer[] = []
              for (let index = 0; index < failing; index += 1)
                answers.push(await at.send(path, { key: path }))
              expect(answers.at(-1)?.status).toBe(500)
              expect(answers.at(-1)?.json()).toEqual({ error: 'the user wrote this' })
            }
            expect(at.errors).toEqual([error, error])
          })
        }
      }

      test(`a duplicate of running work is refused with Retry-After, and waits where it may (${mode})`, async () => {
        const go = gate()
        const started = gate()
        at = await site(express, (app, safe) => {
          const answer: RequestHandler = async (_req, res) => {
            runs += 1
            started.open()
            await go.opened
            res.status(201).json({ runs })
          }
          app.post('/x', idempotent(safe, { mode }), answer)
          app.post('/y', idempotent(safe, { mode, whileRunning: { waitMs: 20_000 } }), answer)
        })
        const first = at.send('/x')
        await started.opened
        const refused = await at.send('/x')
        expect(refused.status).toBe(409)
        expect(refused.json().code).toBe('IN_PROGRESS')
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
        expect((await at.send('/x', { json: { other: true } })).status).toBe(422)
        const both = Promise.all(Array.from({ length: 20 }, () => at?.send('/y', { key: 'y' })))
        await until(() => runs === 2)
        go.open()
        expect((await first).status).toBe(201)
        const answers = await both
        expect(answers.filter((answer) => answer?.replayed).length).toBe(19)
        expect(new Set(answers.map((answer) => answer?.text)).size).toBe(1)
        expect(runs).toBe(2)
      })

      test(`who may not see the stored reply gets 403 (${mode})`, async () => {
        at = await site(express, (app, safe) =>
          app.post(
            '/x',
            idempotent(safe, {
              mode,
              mayReplay: (record, req) =>
                record.status === 201 && (req as { get(n: string): unknown }).get('x-ok') === '1',
            }),
            (_req, res) => void res.status(201).json({ secret: 1 }),
          ),
        )
        await at.send('/x')
        const refused = await at.send('/x')
        expect({ status: refused.status, code: refused.json().code }).toEqual({
          status: 403,
          code: 'REPLAY_REFUSED',
        })
        expect((await at.send('/x', { headers: { 'x-ok': '1' } })).json()).toEqual({ secret: 1 })
      })
    }

    test('with the store down, a named opt-out runs the work unprotected', async () => {
      const store = storeWith(() => ({ claim: () => Promise.reject(new Error('down')) }))
      at = await site(
        express,
        (app, safe) => app.post('/x', idempotent(safe), counted, (_req, res) => void res.json({ runs })),
        { store, mode: 'lease', onStoreDown: 'run' },
      )
      expect((await at.send('/x')).json()).toEqual({ runs: 1 })
      expect((await at.send('/x')).json()).toEqual({ runs: 2 })
    })

    test('a record that cannot be read, or is no reply, is 503 and never run over', async () => {
      const store: MemoryStore = memory()
      let spoil = false
      const find = async (...args: Parameters<MemoryStore['claim']>) => {
        const answer = await store.claim(...args)
        if (!spoil || answer.claimed || answer.seen?.outcome === undefined) return answer
        return { claimed: false as const, seen: { ...answer.seen, outcome: answer.seen.outcome.subarray(1) } }
      }
      at = await site(
        express,
        (app, safe) => app.post('/x', idempotent(safe), counted, (_req, res) => void res.json({})),
        { store: { ...store, claim: find }, mode: 'lease' },
      )
      await at.send('/x')
      spoil = true
      const answer = await at.send('/x')
      expect({ status: answer.status, code: answer.json().code, runs }).toEqual({
        status: 503,
        code: 'RECORD_CORRUPT',
        runs: 1,
      })
    })

    const nested = () => fail('KEY_INVALID', { detail: 'the key of another call' })
    const nesting = {
      handler: undefined,
      scope: () => Promise.reject(nested()),
      fingerprint: () => Promise.reject(nested()),
      keep: () => {
        throw nested()
      },
      mayReplay: () => Promise.reject(nested()),
    }
    for (const [place, callback] of Object.entries(nesting)) {
      test(`an error of ours from another call of the user's code is the application's, not the client's: ${place}`, async () => {
        at = await site(express, (app, safe) => {
          const options = { mode: 'lease' as const, ...(callback && { [place]: callback }) }
          app.post(
            '/x',
            idempotent(safe, options, () => {
              if (callback === undefined) throw nested()
              return reply(200)
            }),
          )
        })
        let answer = await at.send('/x')
        if (place === 'mayReplay') answer = await at.send('/x')
        expect(answer.headers.get('content-type')).not.toContain('problem')
        expect(answer.json()).toEqual({ error: expect.stringContaining('the key of another call') })
        expect(at.errors).toHaveLength(1)
      })
    }

    test('what the tools of the attempt refuse is answered for what it is, also when the handler lets it through', async () => {
      const store = storeWith((real) => ({
        transactions: { ...real.transactions, open: () => Promise.reject(new Error('down')) },
      }))
      at = await site(
        express,
        (app, safe) =>
          app.post(
            '/x',
            idempotent(safe, { mode: 'lease' }, async ({ commit }) => commit(() => reply(200))),
          ),
        { store },
      )
      const answer = await at.send('/x')
      expect({ status: answer.status, code: answer.json().code, errors: at.errors }).toEqual({
        status: 503,
        code: 'STORE_UNAVAILABLE',
        errors: [],
      })
    })

    test('every answer of ours from 500 up is an event, and no refusal is', async () => {
      const failed: string[] = []
      const store = storeWith((real) => ({
        transactions: {
          ...real.transactions,
          begin: async (request) => {
            const open = await real.transactions.begin(request)
            const aborted = async () => ({ kind: 'aborted' as const, error: new Error('ended by itself') })
            return Object.create(open, { save: { value: aborted } })
          },
        },
      }))
      at = await site(
        express,
        (app, safe) => {
          for (const [path, scope] of Object.entries({ '/scope': '', '/ours': 'caller' })) {
            app.post(
              path,
              idempotent(safe, { scope: () => scope, operation: 'order' }, () => reply(200)),
            )
          }
        },
        { store },
      )
      at.safe.on('failed', ({ code, operation, record }) =>
        failed.push(`${operation} ${code} ${record === undefined ? 'without' : 'with'} a record`),
      )
      expect(await at.send('/scope', { key: null })).toMatchObject({ status: 400 })
      const scope = await at.send('/scope')
      const ours = await at.send('/ours')
      expect(failed).toEqual([
        'order SCOPE_INVALID without a record',
        'order TRANSACTION_ABORTED with a record',
      ])
      for (const answer of [scope, ours]) {
        expect(Object.keys(answer.json())).toEqual(['type', 'title', 'status', 'detail', 'code'])
        expect(answer.json().detail).toMatch(/The fault is in the service; its operator finds it/)
      }
    })

    test('problems point to where the pages are', async () => {
      at = await site(express, (app, safe) => app.post('/x', idempotent(safe)), {
        problemBase: 'https://docs.example/problems/',
      })
      const answer = await at.send('/x', { key: null })
      expect(answer.json().type).toBe('https://docs.example/problems/KEY_REQUIRED')
    })
  })
}
