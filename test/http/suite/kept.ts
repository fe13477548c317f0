/** What is kept of an end, and whose writes stand (rules 11 and 26). */
import type { ErrorRequestHandler, RequestHandler } from 'express'
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { type ExpressModule, modes, type Site, site } from './site.js'

class Oops extends Error {
  constructor(
    readonly status: number,
    readonly expose = status < 500,
  ) {
    super('the user wrote this')
  }
}

/** Every way a handler can throw. */
const throwers: Record<string, (error: Error) => RequestHandler> = {
  'a throw': (error) => () => {
    throw error
  },
  'next(error)': (error) => (_req, _res, next) => next(error),
  'a later next(error)': (error) => (_req, _res, next) => void setImmediate(() => next(error)),
}

export function keptSuite(express: ExpressModule): void {
  describe('kept', () => {
    let at: Site | undefined
    let runs = 0
    let effects = 0
    afterEach(async () => {
      await at?.close()
      runs = 0
      effects = 0
    })

    const effect: RequestHandler = (req, _res, next) => {
      runs += 1
      req.idempotency?.tx?.defer(() => {
        effects += 1
      })
      next()
    }

    for (const [name, thrower] of Object.entries(throwers)) {
      for (const status of [406, 422, 503]) {
        test(`in transaction mode a throw is never kept, whatever its status: ${name}, ${status}`, async () => {
          at = await site(express, (app, safe) =>
            app.post('/x', idempotent(safe), effect, (req, res, next) => {
              if (runs === 1) return thrower(new Oops(status))(req, res, next)
              res.status(201).json({ runs })
            }),
          )
          const first = await at.send('/x')
          expect({ status: first.status, effects }).toEqual({ status, effects: 0 })
          const second = await at.send('/x')
          expect({ status: second.status, replayed: second.replayed, effects }).toEqual({
            status: 201,
            replayed: false,
            effects: 1,
          })
          expect((await at.send('/x')).replayed).toBe(true)
          expect(at.errors).toHaveLength(1)
        })

        test(`in lease mode the status that the framework sends decides: ${name}, ${status}`, async () => {
          at = await site(express, (app, safe) =>
            app.post('/x', idempotent(safe, { mode: 'lease' }), effect, thrower(new Oops(status))),
          )
          const first = await at.send('/x')
          const second = await at.send('/x')
          expect([first.status, second.status]).toEqual([status, status])
          expect(second.text).toBe(first.text)
          expect({ replayed: second.replayed, runs }).toEqual({
            replayed: status < 500,
            runs: status < 500 ? 1 : 2,
          })
        })
      }
    }

    test('a chosen 422 is kept in transaction mode, with the writes before it', async () => {
      at = await site(express, (app, safe) =>
        app.post('/x', idempotent(safe), effect, (_req, res) => void res.status(422).json({})),
      )
      await at.send('/x')
      expect(await at.send('/x')).toMatchObject({ status: 422, replayed: true })
      expect({ runs, effects }).toEqual({ runs: 1, effects: 1 })
    })

    test('an existing handler that is kept without having used tx is reported (rule 24)', async () => {
      at = await site(express, (app, safe) => {
        app.post('/unused', idempotent(safe), (_req, res) => void res.status(201).json({}))
        app.post('/used', idempotent(safe), effect, (_req, res) => void res.status(201).json({}))
      })
      let unused = 0
      at.safe.on('txUnused', () => {
        unused += 1
      })
      for (const path of ['/used', '/unused']) await at.send(path, { key: path })
      expect(unused).toBe(1)
    })

    test('where throws cannot be seen, transaction mode keeps no status from 400 up', async () => {
      const answer: RequestHandler = (req, res) => void res.status(Number(req.query.status)).json({})
      const wrapped =
        (inner: RequestHandler): RequestHandler =>
        (req, res, next) =>
          inner(req, res, next)
      at = await site(express, (app, safe) => {
        const router = express.Router()
        router.use(idempotent(safe))
        router.post('/x', effect, answer)
        app.use('/router', router)
        const own: ErrorRequestHandler = (error, _req, res, _next) => void res.status(error.status).json({})
        app.post('/handled', idempotent(safe), effect, answer, own)
        app.post('/wrapped', wrapped(idempotent(safe) as RequestHandler), effect, answer)
        app.all(/stale/, (_req, _res, next) => next())
        app.use('/stale', idempotent(safe), effect, answer)
        app.post('/left', idempotent(safe), effect, (_req, _res, next) => next())
        app.post('/skipped', idempotent(safe), effect, (_req, _res, next) => next('route'))
        app.post(/left|skipped/, answer)
      })
      for (const path of ['/router/x', '/handled', '/wrapped', '/stale', '/left', '/skipped']) {
        for (const [status, replayed] of [
          [201, true],
          [422, false],
        ] as const) {
          const send = () => at?.send(`${path}?status=${status}`, { key: `${path}${status}` })
          expect((await send())?.status).toBe(status)
          expect({ path, status, replayed: (await send())?.replayed }).toEqual({ path, status, replayed })
        }
      }
      expect(effects).toBe(6)
    })

    test('seeing throws changes nothing else about a route', async () => {
      at = await site(express, (app, safe) => {
        app.post('/x', idempotent(safe), (_req, res) => void res.json({}))
        app.get('/x', (_req, res) => void res.json({ got: true }))
        app.all('/all', idempotent(safe), (_req, res) => void res.json({}))
      })
      for (const key of ['a', 'b', 'c']) {
        await at.send('/x', { key })
        await at.send('/all', { key: `all${key}` })
      }
      expect((await at.send('/x', { method: 'GET' })).json()).toEqual({ got: true })
      expect((await at.send('/x', { method: 'DELETE' })).status).toBe(404)
      const options = await at.send('/x', { method: 'OPTIONS' })
      expect(options.status).toBe(200)
      expect(options.headers.get('allow')?.split(/, ?/).sort()).toEqual(['GET', 'HEAD', 'POST'])
    })

    const keeps: [string, NonNullable<Parameters<typeof idempotent>[1]>['keep'], Record<number, boolean>][] =
      [
        [
          'the default',
          undefined,
          { 200: true, 303: true, 400: true, 404: true, 409: false, 429: false, 401: false, 500: false },
        ],
        ['all', 'all', { 200: true, 409: true, 500: true }],
        ['success', 'success', { 201: true, 399: true, 400: false, 404: false }],
        ['a predicate', ({ status }) => status === 418, { 418: true, 200: false }],
      ]
    for (const mode of modes) {
      for (const [name, keep, kept] of keeps) {
        test(`what is kept: ${name} (${mode})`, async () => {
          at = await site(
            express,
            (app, safe) => {
              app.post(
                '/replies',
                idempotent(safe, { mode } as { mode: 'lease' }, ({ req }) => reply(Number(req.query.s))),
              )
              app.post(
                '/around',
                idempotent(safe, { mode }),
                (req, res) => void res.status(Number(req.query.s)).end(),
              )
            },
            keep === undefined ? {} : { keep },
          )
          for (const path of ['/replies', '/around']) {
            for (const [status, replayed] of Object.entries(kept)) {
              const send = () => at?.send(`${path}?s=${status}`, { key: `${path}${status}` })
              expect((await send())?.status).toBe(Number(status))
              expect({ status, replayed: (await send())?.replayed }).toEqual({ status, replayed })
            }
          }
        })
      }

      for (const answer of [async () => true, () => Promise.reject(new Error('no')), () => 1]) {
        test(`a keep that does not answer true or false at once is refused: ${answer} (${mode})`, async () => {
          const keep = answer as unknown as () => boolean
          at = await site(express, (app, safe) => {
            app.post('/around', idempotent(safe, { mode, keep }), effect, (_req, res) => void res.json({}))
            app.post(
              '/replies',
              idempotent(safe, { mode, keep } as { mode: 'lease' }, () => reply(200)),
            )
          })
          for (const path of ['/around', '/replies'])
            expect((await at.send(path, { key: path })).json().code).toBe('OPTION_INVALID')
          expect(effects).toBe(0)
        })
      }

      test(`past the point of no return every end is kept, and its writes are undone (${mode})`, async () => {
        at = await site(express, (app, safe) => {
          app.post(
            '/replies',
            idempotent(safe, { mode } as { mode: 'transaction' }, ({ tx, keepFailure, req }) => {
              runs += 1
              tx?.defer(() => {
                effects += 1
              })
              keepFailure()
              throw new Oops(Number(req.query.s))
            }),
          )
          app.post('/around', idempotent(safe, { mode }), effect, (req) => {
            req.idempotency?.keepFailure()
            throw new Oops(Number(req.query.s))
          })
        })
        for (const [path, status, text] of [
          ['/replies', 502, 'the failure is final'],
          ['/replies', 402, 'the user wrote this'],
          ['/around', 502, 'the user wrote this'],
          ['/around', 200, 'the user wrote this'],
        ] as const) {
          const send = () => at?.send(`${path}?s=${status}`, { key: `${path}${status}` })
          const first = await send()
          expect({ status: first?.status, replayed: first?.replayed }).toEqual({ status, replayed: false })
          expect(first?.text).toContain(text)
          const again = await send()
          expect({ status: again?.status, replayed: again?.replayed }).toEqual({ status, replayed: true })
          expect(again?.text).toBe(first?.text)
        }
        expect({ runs, effects }).toEqual({ runs: 4, effects: 0 })
        expect((await at.send('/replies?s=502', { key: '/replies502' })).text).not.toContain(
          'the user wrote this',
        )
      })
    }

    test('in lease mode what commit writes down is the answer, whatever the handler says later', async () => {
      const cookies = { 'set-cookie': ['a=1', 'b=2'], 'x-trace': 't' }
      at = await site(express, (app, safe) => {
        app.use((_req, res, next) => {
          res.set('x-before', 'kept')
          next()
        })
        app.post(
          '/replies',
          idempotent(safe, { mode: 'lease' }, async ({ commit }) => {
            await commit((tx) => {
              tx.defer(() => {
                effects += 1
              })
              return reply(201, { from: 'commit' }, cookies)
            })
            throw new Error('too late')
          }),
        )
        app.post('/around', idempotent(safe, { mode: 'lease' }), async (req, res) => {
          await req.idempotency?.commit(() => reply(201, { from: 'commit' }, cookies))
          res.set('x-from', 'handler').set('x-before', 'changed').status(500).json({ from: 'handler' })
        })
      })
      for (const path of ['/replies', '/around']) {
        for (const replayed of [false, true]) {
          const answer = await at.send(path, { key: path })
          expect({ status: answer.status, body: answer.json(), replayed: answer.replayed }).toEqual({
            status: 201,
            body: { from: 'commit' },
            replayed,
          })
          expect([answer.headers.get('x-from'), answer.headers.get('x-before')]).toEqual([null, 'kept'])
          expect(answer.headers.getSetCookie()).toEqual(replayed ? [] : ['a=1', 'b=2'])
          expect(answer.headers.get('x-trace')).toBe(replayed ? null : 't')
        }
      }
      expect(effects).toBe(1)
    })

    test('a commit without a reply is refused before anything is written', async () => {
      at = await site(express, (app, safe) =>
        app.post(
          '/x',
          idempotent(safe, { mode: 'lease' }, async ({ commit }) => {
            runs += 1
            await commit((tx) => {
              tx.defer(() => {
                effects += 1
              })
              return runs === 1 ? { id: 1 } : reply(200)
            })
            return reply(200)
          }),
        ),
      )
      expect((await at.send('/x')).json().code).toBe('OPTION_INVALID')
      expect(effects).toBe(0)
      expect((await at.send('/x')).status).toBe(200)
      expect(effects).toBe(1)
    })
  })
}
