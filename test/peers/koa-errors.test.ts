/** Koa: what fails, where, and what is made of it. */
import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/koa.js'
import { reply } from '../../dist/index.js'
import { modes, random, shown } from './fastify-room.js'
import { around, inRoom } from './koa-room.js'

test('an error handler before us never sees our refusals, and sees what scope throws, once', () => {
  const errors: unknown[] = []
  return inRoom(
    (app, safe) => {
      app.use(async (ctx, next) => {
        try {
          await next()
        } catch (error) {
          errors.push(error)
          ctx.status = 500
          ctx.body = { hidden: true }
        }
      })
      const scope = (ctx: Context) => {
        if (ctx.path === '/own') throw new Error('no caller')
        return 's'
      }
      app.use(idempotent(safe, { scope }))
      app.use((ctx) => {
        ctx.body = { id: random() }
      })
    },
    async ({ post }) => {
      expect((await post('/orders', { key: null })).status).toBe(400)
      expect((await post()).status).toBe(200)
      expect((await post('/orders', { json: 2 })).status).toBe(422)
      expect(errors).toEqual([])
      expect(shown(await post('/own'))).toMatchObject({ status: 500, body: '{"hidden":true}' })
      expect(errors).toHaveLength(1)
    },
  )
})

test('what keep throws goes to the error event, and no part of the answer to the client', () =>
  inRoom(
    (app, safe) => {
      const keep = () => {
        throw new Error('no answer')
      }
      app.use(idempotent(safe, { keep }))
      app.use((ctx) => {
        ctx.set('location', '/1')
        ctx.body = { id: random() }
      })
    },
    async ({ post, errors }) => {
      const got = await post()
      expect(shown(got)).toMatchObject({ status: 500, body: 'Internal Server Error' })
      expect(got.headers).not.toHaveProperty('location')
      expect(errors.map(({ message }) => message)).toEqual(['no answer'])
    },
  ))

/** Every way to fail; the second is made a 400 of by middleware before us. */
const failures: Record<string, (ctx: Context) => unknown> = {
  'ctx.throw': (ctx) => ctx.throw(400, 'failed'),
  'a rejection': async () => {
    throw Object.assign(new Error('failed'), { status: 400 })
  },
  'a text that is thrown': async () => {
    throw 'failed'
  },
  'a stream that fails at once': (ctx) => {
    ctx.body = new Readable({
      read() {
        this.destroy(Object.assign(new Error('failed'), { status: 400 }))
      },
    })
  },
  'a value that has no JSON': (ctx) => {
    ctx.body = { id: 1n }
  },
}

for (const handled of [false, true]) {
  for (const [how, fail] of Object.entries(failures)) {
    test(`a failure is not kept, and nor are its writes, ${handled ? 'answered by middleware' : 'answered by Koa'}: ${how}`, () => {
      let runs = 0
      let effects = 0
      return inRoom(
        (app, safe) => {
          app.use(async (ctx, next) => {
            if (!handled) return next()
            return next().catch(() => {
              ctx.status = 400
              ctx.body = { handled: true }
            })
          })
          around(app, safe, (ctx) => {
            runs += 1
            ctx.state.idempotency.tx.defer(() => {
              effects += 1
            })
            return fail(ctx)
          })
        },
        async ({ post }) => {
          for (const _ of [1, 2]) {
            const got = await post().catch(() => undefined)
            expect(got?.replayed ?? false).toBe(false)
            expect(got?.status ?? 400).toBeGreaterThanOrEqual(400)
          }
          expect({ runs, effects }).toEqual({ runs: 2, effects: 0 })
        },
      )
    })
  }
}

for (const mode of modes) {
  test(`a stream that breaks is no answer (${mode})`, () => {
    let runs = 0
    return inRoom(
      (app, safe) =>
        around(app, safe, (ctx) => {
          runs += 1
          ctx.body = runs > 1 ? { runs } : Readable.from(pieces())
        }),
      async ({ post }) => {
        const first = await post().then(
          ({ status }) => status,
          () => 'cut',
        )
        expect(first).toBe('cut')
        expect(shown(await post())).toEqual({ status: 200, body: '{"runs":2}', replayed: false })
      },
      { mode },
    )
  })

  test(`middleware before us that fails behind the handler has failed the request (${mode})`, () => {
    let runs = 0
    return inRoom(
      (app, safe) => {
        app.use(async (_ctx, next) => {
          await next()
          if (runs === 1) throw Object.assign(new Error('failed'), { status: 400 })
        })
        around(app, safe, (ctx) => {
          runs += 1
          ctx.body = { runs }
        })
      },
      async ({ post }) => {
        const first = await post()
        expect(shown(first)).toMatchObject({ status: 400, replayed: false })
        // In lease mode the work is done, and the status that was sent decides (rule 11).
        expect((await post()).replayed).toBe(mode === 'lease')
      },
      { mode },
    )
  })
}

async function* pieces() {
  yield 'a piece'
  await new Promise((resolve) => setImmediate(resolve))
  throw new Error('the disk is gone')
}

test('mounted twice on one way it refuses instead of waiting for itself', () =>
  inRoom(
    (app, safe) => {
      app.use(idempotent(safe))
      app.use(idempotent(safe, {}, () => reply(201)))
    },
    async ({ post }) => expect((await post()).body.toString()).toContain('OPTION_INVALID'),
  ))

test('a throw behind a complete answer changes nothing', () =>
  inRoom(
    (app, safe) =>
      around(app, safe, async (ctx) => {
        ctx.respond = false
        ctx.res.statusCode = 201
        ctx.res.end(random())
        throw new Error('behind the answer')
      }),
    async ({ post, errors }) => {
      const first = await post()
      expect(first.status).toBe(201)
      expect(shown(await post())).toEqual({ ...shown(first), replayed: true })
      expect(errors).toHaveLength(1)
    },
  ))
