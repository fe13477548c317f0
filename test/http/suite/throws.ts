/** Throws and their like: when, with what, past whom, and that none of them lets a handler run unprotected (rules 11 and 24). */
import type { ErrorRequestHandler, NextFunction, RequestHandler, Response } from 'express'
import { idempotent, serve } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { type ExpressModule, gate, modes, type Site, site } from './site.js'

const later = () => new Promise((resume) => setImmediate(resume))

/** What a handler may do behind its complete answer. */
const afterwards: Record<string, (next: NextFunction, res: Response) => unknown> = {
  'next(error)': (next) => next(new Error('behind the answer')),
  'a later next(error)': async (next) => {
    await later()
    next(new Error('behind the answer'))
  },
  'a throw in the next handler': (next) => next(),
}

/** Values that say nothing, or that Express takes for directions. */
const reasons = { undefined, null: null, zero: 0, text: '', route: 'route', router: 'router' }

/** What nobody can describe. */
const strange: Record<string, () => unknown> = {
  'without a prototype': () => Object.create(null),
  'with getters that throw': () =>
    Object.defineProperties(new Error('x'), {
      status: { get: thrower },
      expose: { get: thrower },
    }),
  'a proxy that refuses everything': () =>
    new Proxy({}, { get: thrower, has: thrower, getPrototypeOf: thrower }),
  nothing: () => undefined,
}

function thrower(): never {
  throw new Error('not to be read')
}

export function throwSuite(express: ExpressModule): void {
  describe('throws', () => {
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

    for (const mode of modes) {
      for (const [name, afterward] of Object.entries(afterwards)) {
        for (const noReturn of [false, true]) {
          test(`a complete answer stands, and so do its writes: ${name}${noReturn ? ', past the point of no return' : ''} (${mode})`, async () => {
            const heard = gate()
            at = await site(express, (app, safe) => {
              app.post('/x', idempotent(safe, { mode }), effect, (req, res, next) => {
                if (noReturn) req.idempotency?.keepFailure()
                res.status(201).json({ orderId: 1 })
                afterward(next, res)
              })
              app.use((error: unknown, _req: unknown, _res: unknown, next: NextFunction) => {
                heard.open()
                next(error)
              })
              app.post('/x', () => {
                throw new Error('behind the answer')
              })
              app.use((error: unknown, _req: unknown, _res: unknown, next: NextFunction) => {
                heard.open()
                next(error)
              })
            })
            const first = await at.send('/x')
            await heard.opened
            expect({ status: first.status, replayed: first.replayed }).toEqual({
              status: 201,
              replayed: false,
            })
            expect(await at.send('/x')).toMatchObject({ status: 201, replayed: true, text: first.text })
            expect({ runs, effects, errors: at.errors.length }).toEqual({
              runs: 1,
              effects: mode === 'transaction' ? 1 : 0,
              errors: 1,
            })
          })
        }
      }

      test(`an answer that its handler begins and throws in is none, whoever ends it (${mode})`, async () => {
        const ends: ErrorRequestHandler = (_error, _req, res, _next) => void res.end('}')
        at = await site(express, (app, safe) => {
          app.post('/x', idempotent(safe, { mode }), effect, (_req, res) => {
            res.writeHead(201, { 'content-type': 'application/json' })
            if (runs > 1) return void res.end('{}')
            throw new Error('in the middle')
          })
          app.use(ends)
        })
        const first = await at.send('/x')
        expect({ status: first.status, effects }).toEqual({ status: 500, effects: 0 })
        expect(await at.send('/x')).toMatchObject({ status: 201, text: '{}', replayed: false })
      })

      for (const [name, value] of Object.entries(reasons)) {
        test(`what fails with no reason to tell is no leave to go on: ${name} (${mode})`, async () => {
          const failing = () => Promise.reject(value)
          at = await site(express, (app, safe) => {
            for (const callback of ['scope', 'fingerprint', 'mayReplay'] as const) {
              const options = { mode, [callback]: failing } as { mode: 'lease' }
              app.post(`/${callback}`, idempotent(safe, options), (_req, res) => {
                runs += 1
                res.json({})
              })
            }
            app.post('/handler', idempotent(safe, { mode } as { mode: 'lease' }, failing))
            app.use('/served', serve(failing))
            app.post(/./, (_req, res) => {
              runs += 1
              res.json({})
            })
          })
          await at.send('/mayReplay', { key: 'm' })
          expect(runs).toBe(1)
          for (const path of ['/scope', '/fingerprint', '/mayReplay', '/handler', '/served'])
            expect(await at.send(path, { key: path.slice(1, 2) })).toMatchObject({ status: 500 })
          expect({ runs, errors: at.errors.every((error) => error instanceof Error) }).toEqual({
            runs: 1,
            errors: true,
          })
        })
      }

      for (const [name, value] of Object.entries(strange)) {
        test(`past the point of no return anything that is thrown is kept: ${name} (${mode})`, async () => {
          at = await site(express, (app, safe) =>
            app.post(
              '/x',
              idempotent(safe, { mode } as { mode: 'lease' }, ({ keepFailure }) => {
                runs += 1
                keepFailure()
                throw value()
              }),
            ),
          )
          expect(await at.send('/x')).toMatchObject({ status: 500, replayed: false })
          expect(await at.send('/x')).toMatchObject({ status: 500, replayed: true })
          expect(runs).toBe(1)
        })
      }

      test(`a handler that ends its request has given up: the key is free (${mode})`, async () => {
        at = await site(
          express,
          (app, safe) =>
            app.post('/x', idempotent(safe, { mode }), effect, (req, res) => {
              if (runs > 1) return void res.end('whole')
              req.destroy()
            }),
          { leaseMs: 40 },
        )
        const released = gate()
        at.safe.on('released', () => released.open())
        await expect(at.send('/x')).rejects.toThrow()
        await released.opened
        expect(effects).toBe(0)
        expect(await at.send('/x')).toMatchObject({ text: 'whole', replayed: false })
      })
    }

    test('in transaction mode a handler that ends the connection has given up; in lease mode it may go on', async () => {
      const go = gate()
      at = await site(express, (app, safe) => {
        for (const mode of modes)
          app.post(`/${mode}`, idempotent(safe, { mode }), effect, async (req, res) => {
            if (runs > 1) return void res.end('whole')
            req.socket.destroy()
            await go.opened
            res.end('first')
          })
      })
      const ended = gate<string>()
      for (const name of ['released', 'completed'] as const) at.safe.on(name, () => ended.open(name))
      await expect(at.send('/transaction')).rejects.toThrow()
      expect(await ended.opened).toBe('released')
      expect(await at.send('/transaction')).toMatchObject({ text: 'whole', replayed: false })
      runs = 0
      await expect(at.send('/lease', { key: 'k2' })).rejects.toThrow()
      expect((await at.send('/lease', { key: 'k2' })).json().code).toBe('IN_PROGRESS')
      go.open()
      const completed = gate()
      at.safe.on('completed', () => completed.open())
      await completed.opened
      expect(await at.send('/lease', { key: 'k2' })).toMatchObject({ text: 'first', replayed: true })
    })

    const passers: Record<string, RequestHandler> = {
      'a file that is not there': (_req, res) => res.sendFile('/not/there'),
      'a download that is not there': (_req, res) => res.download('/not/there'),
      'a view that fails': (_req, res) => res.render('view'),
      'req.next': (req) => req.next?.(Object.assign(new Error('x'), { status: 404 })),
    }
    for (const [name, passer] of Object.entries(passers)) {
      for (const place of ['application', 'router'] as const) {
        test(`an error that goes past the route is one: ${name} (${place})`, async () => {
          const nexts: unknown[] = []
          at = await site(express, (app, safe) => {
            app.set('view', FailingView)
            const target = place === 'router' ? express.Router() : app
            target.post('/x', (req, _res, next) => {
              nexts.push(req.next)
              next()
            })
            target.post('/x', idempotent(safe), effect, (req, res, next) => {
              if (runs === 1) return passer(req, res, next)
              res.status(201).end()
              res.on('finish', () => nexts.push(req.next))
            })
            if (target !== app) app.use('/', target)
          })
          expect(await at.send('/x')).toMatchObject({ status: 404 })
          expect(effects).toBe(0)
          expect(await at.send('/x')).toMatchObject({ status: 201, replayed: false })
          expect(effects).toBe(1)
          expect(nexts[2]).toBe(nexts[1])
        })
      }
    }

    test('the same intent twice on the way of one request is a mistake, and said to be one at once', async () => {
      const failed = gate<string>()
      at = await site(express, (app, safe) => {
        safe.on('failed', ({ error }) => failed.open(error.message))
        app.use('/x', idempotent(safe))
        app.post(
          '/x',
          idempotent(safe, { mode: 'lease' }, () => reply(200)),
        )
        app.post(
          '/y',
          idempotent(safe),
          idempotent(safe, { operation: 'inner' }),
          (_req, res) => void res.json({}),
        )
      })
      for (let round = 0; round < 2; round += 1) {
        const answer = await at.send('/x')
        expect({ status: answer.status, code: answer.json().code }).toEqual({
          status: 500,
          code: 'OPTION_INVALID',
        })
      }
      expect(await failed.opened).toContain('mounted twice')
      expect(await at.send('/y', { key: 'k2' })).toMatchObject({ status: 200, replayed: false })
      expect(await at.send('/y', { key: 'k2' })).toMatchObject({ status: 200, replayed: true })
    })
  })
}

/** A view as Express looks one up, which fails while it renders. */
class FailingView {
  readonly path = 'view'
  render(_options: unknown, done: (error: Error) => void): void {
    done(Object.assign(new Error('x'), { status: 404 }))
  }
}
