/** Hono, beyond what the suite holds every adapter to: its helpers, its error handling, its routing, and middleware beside ours. */

import { gunzipSync } from 'node:zlib'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { compress } from 'hono/compress'
import { setCookie } from 'hono/cookie'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/hono.js'
import { corsAllowedHeaders, corsExposedHeaders, reply } from '../../dist/index.js'
import { memory } from '../../dist/stores/memory.js'
import { type Got, type Sending, send } from '../../dist/testing/http/wire.js'
import { planFaults, withFaults } from '../../dist/testing/index.js'
import { type Env, modes, setUp } from './hono-room.js'
import { listen } from './hono-site.js'

/** Sends to an application on a port of its own; each text is a path. */
async function on(
  app: Pick<Hono<Env>, 'fetch'>,
  body: (post: (path?: string, sending?: Sending) => Promise<Got>) => Promise<void>,
): Promise<void> {
  const server = await listen(app)
  try {
    await body((path = '/orders', sending = {}) =>
      send(server.url + path, { json: { total: 1 }, ...sending }),
    )
  } finally {
    await server.close()
  }
}

const shown = ({ status, body, replayed }: Got) => ({ status, body: body.toString(), replayed })

test.each(modes)('whatever helper answers, a retry gets the same (%s)', async (mode) => {
  const app = new Hono<Env>()
  const around = idempotent(setUp(mode))
  const answers: Record<string, (c: Context) => Response | Promise<Response>> = {
    '/json': (c) => c.json({ id: Math.random() }, 201, { location: '/orders/1' }),
    '/html': (c) => c.html(`<p>${Math.random()}</p>`),
    '/text': (c) => c.text(String(Math.random()), 202),
    '/body': (c) => c.body(Uint8Array.of(0, 255, 10), 200, { 'content-type': 'application/x-own' }),
    '/status': (c) => {
      c.status(203)
      c.header('etag', '"1"')
      return c.json({ id: Math.random() })
    },
    '/new': () => new Response('raw', { status: 200, headers: { 'content-type': 'text/x-own' } }),
    '/empty': (c) => c.body(null, 204),
    '/redirect': (c) => c.redirect('/orders/1', 303),
    '/missing': (c) => c.notFound(),
  }
  for (const [path, handler] of Object.entries(answers)) app.post(path, around, handler)
  await on(app, async (post) => {
    for (const path of Object.keys(answers)) {
      const first = await post(path, { key: path })
      const again = await post(path, { key: path })
      expect([path, shown(again)]).toEqual([path, { ...shown(first), replayed: true }])
      for (const name of ['content-type', 'location', 'etag'])
        expect([path, name, again.headers[name]]).toEqual([path, name, first.headers[name]])
    }
  })
})

test.each(modes)('a 304 is not given to a caller who may have no cache (%s)', async (mode) => {
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp(mode)), (c) => c.body(null, 304))
  await on(app, async (post) => {
    expect((await post()).status).toBe(304)
    expect(JSON.parse((await post()).body.toString())).toMatchObject({ code: 'NOT_REPLAYABLE' })
  })
})

test.each(modes)(
  'a handler that returns a reply may set cookies and headers: its first caller gets them (%s)',
  async (mode) => {
    const app = new Hono<Env>()
    app.use(async (c, next) => {
      setCookie(c, 'early', '1')
      c.header('x-request-id', 'r1')
      await next()
    })
    app.post(
      '/orders',
      idempotent(setUp(mode), {}, ({ c }) => {
        setCookie(c as Context, 'session', 'alice')
        return reply(201, { ok: true }, { 'set-cookie': 'own=1' })
      }),
    )
    app.post(
      '/json',
      idempotent(setUp(mode), {}, ({ c, body }) => c.json(body, 201)),
    )
    await on(app, async (post) => {
      const cookies = ({ headers }: Got) => (headers['set-cookie'] ?? '').split(', ').sort()
      const first = await post()
      expect(cookies(first)).toEqual(['early=1; Path=/', 'own=1', 'session=alice; Path=/'])
      const again = await post()
      expect([cookies(again), again.headers['x-request-id'], again.replayed]).toEqual([
        ['early=1; Path=/'],
        'r1',
        true,
      ])
      const json = await post('/json', { key: 'k2' })
      expect([shown(json), cookies(json)]).toEqual([
        { status: 201, body: '{"total":1}', replayed: false },
        ['early=1; Path=/'],
      ])
    })
  },
)

test.each([
  ['transaction', 2, 0],
  ['lease', 1, 1],
] as const)(
  'what app.onError makes of a throw is sent; in %s mode two requests ran the work %i time(s), with %i effect(s)',
  async (mode, times, effects) => {
    const app = new Hono<Env>()
    const seen = { runs: 0, effects: 0, errors: 0 }
    app.onError((error, c) => {
      seen.errors += 1
      return error instanceof HTTPException ? error.getResponse() : c.json({ error: error.message }, 500)
    })
    app.post('/orders', idempotent(setUp(mode)), (c) => {
      seen.runs += 1
      const count = () => {
        seen.effects += 1
      }
      if (mode === 'transaction') c.get('idempotency')?.tx.defer(count)
      else count()
      throw new HTTPException(422, { message: 'not payable' })
    })
    await on(app, async (post) => {
      for (let tries = 0; tries < 2; tries += 1)
        expect(shown(await post())).toMatchObject({ status: 422, body: 'not payable' })
    })
    expect(seen).toEqual({ runs: times, effects, errors: times })
  },
)

test.each(modes)(
  'an error handler never sees our refusals, and sees what the user’s own code throws once (%s)',
  async (mode) => {
    const app = new Hono<Env>()
    const errors: string[] = []
    app.onError((error, c) => {
      errors.push(error.message)
      return c.text('handled', 500)
    })
    const safe = setUp(mode)
    const scope = () => {
      throw new Error('no user')
    }
    app.post('/orders', idempotent(safe), (c) => c.text('ok'))
    app.post('/scope', idempotent(safe, { scope }), (c) => c.text('never'))
    app.post(
      '/scope-reply',
      idempotent(safe, { scope }, () => reply(200)),
    )
    app.post('/text', idempotent(safe), () => {
      throw 'a text'
    })
    await on(app, async (post) => {
      expect((await post('/orders', { key: null })).status).toBe(400)
      await post()
      expect((await post('/orders', { json: { total: 2 } })).status).toBe(422)
      expect(errors).toEqual([])
      for (const path of ['/scope', '/scope-reply']) expect(shown(await post(path)).body).toBe('handled')
      expect(errors).toEqual(['no user', 'no user'])
      // Hono itself lets what is no Error through, and the server answers.
      expect((await post('/text', { key: 'k2' })).status).toBe(500)
    })
  },
)

test.each(modes)(
  'what is thrown before us claims nothing; what middleware behind us throws frees the key (%s)',
  async (mode) => {
    const app = new Hono<Env>()
    const safe = setUp(mode)
    let failing = true
    const authenticate: MiddlewareHandler = async (c, next) => {
      if (c.req.header('x-user') === undefined) throw new HTTPException(401)
      await next()
    }
    const flaky: MiddlewareHandler = async (_c, next) => {
      await next()
      if (failing) throw new Error('after the handler')
    }
    app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.text('failed', 500)))
    app.post('/orders', authenticate, idempotent(safe), flaky, (c) => c.json({ id: Math.random() }, 201))
    await on(app, async (post) => {
      expect((await post()).status).toBe(401)
      expect(await safe.list()).toEqual([])
      const headers = { 'x-user': 'alice' }
      expect(shown(await post('/orders', { headers }))).toMatchObject({ status: 500, body: 'failed' })
      failing = false
      expect(shown(await post('/orders', { headers }))).toMatchObject({ status: 201, replayed: false })
      expect((await post('/orders', { headers })).replayed).toBe(true)
    })
  },
)

test('a route that returns nothing is a failure: 500, and the key is free', async () => {
  const app = new Hono<Env>()
  const safe = setUp('lease')
  app.onError((error, c) => c.text(error.message, 500))
  app.post('/orders', idempotent(safe), (async () => undefined) as never)
  await on(app, async (post) => {
    expect(shown(await post())).toMatchObject({
      status: 500,
      body: expect.stringContaining('returned a response'),
    })
    expect((await safe.list())[0]?.state).not.toBe('done')
  })
})

test.each(modes)(
  'an answer that could not be stored is taken back whole, with its headers and cookies (%s)',
  async (mode) => {
    const faults = planFaults()
    for (const point of ['save', 'complete', 'renew'] as const) faults.always(point, 'failBefore')
    const app = new Hono<Env>()
    app.use(async (c, next) => {
      c.header('x-early', '1')
      await next()
    })
    app.post(
      '/orders',
      idempotent(setUp(mode, { store: withFaults(memory(), faults), leaseMs: 200 })),
      (c) => {
        setCookie(c, 'session', 'alice')
        return c.json({ id: 1 }, 201, { location: '/orders/1' })
      },
    )
    await on(app, async (post) => {
      const { status, headers } = await post()
      expect(status).toBe(503)
      expect([headers['set-cookie'], headers.location, headers['x-early']]).toEqual([
        undefined,
        undefined,
        '1',
      ])
    })
  },
)

test('one key on two prefixes of one group is a mismatch: the path counts as it was sent', async () => {
  const group = new Hono<Env>()
  group.post('/orders', idempotent(setUp('transaction')), (c) => c.json({ path: c.req.path }))
  const app = new Hono<Env>().basePath('/api').route('/v1', group).route('/v2', group)
  await on(app, async (post) => {
    expect((await post('/api/v1/orders')).status).toBe(200)
    expect((await post('/api/v1/orders')).replayed).toBe(true)
    expect((await post('/api/v2/orders')).status).toBe(422)
  })
})

test('mounted for all routes it covers each; a path without a route is a 404 that is replayed, and GET passes', async () => {
  const app = new Hono<Env>()
  app.use(idempotent(setUp('transaction')))
  app.get('/orders', (c) => c.text('list'))
  app.post('/orders', (c) => c.json({ key: c.get('idempotency')?.key }))
  app.notFound((c) => c.text(`nothing here: ${Math.random()}`, 404))
  await on(app, async (post) => {
    expect(shown(await post('/orders', { method: 'GET', json: undefined })).body).toBe('list')
    expect(shown(await post()).body).toBe('{"key":"k1"}')
    const first = await post('/nowhere', { key: 'k2' })
    expect(shown(await post('/nowhere', { key: 'k2' }))).toEqual({ ...shown(first), replayed: true })
  })
})

test('mounted twice on one way it says so, and the key is not held for ever', async () => {
  const app = new Hono<Env>()
  const safe = setUp('lease')
  app.use(idempotent(safe))
  app.post('/orders', idempotent(safe), (c) => c.text('never'))
  await on(app, async (post) => {
    expect(JSON.parse((await post()).body.toString())).toMatchObject({ code: 'OPTION_INVALID' })
    expect(JSON.parse((await post()).body.toString())).toMatchObject({ code: 'OPTION_INVALID' })
  })
})

test.each(['before', 'after'] as const)(
  'compression mounted %s ours: every retry can read what it gets',
  async (where) => {
    const app = new Hono<Env>()
    const around = idempotent(setUp('transaction'))
    const big = (c: Context) => c.json({ id: Math.random(), text: 'x'.repeat(5000) })
    if (where === 'before') app.post('/orders', compress(), around, big)
    else app.post('/orders', around, compress(), big)
    await on(app, async (post) => {
      const zipped = { headers: { 'accept-encoding': 'gzip' } }
      const first = await post('/orders', zipped)
      expect(first.headers['content-encoding']).toBe('gzip')
      const text = gunzipSync(first.body).toString()
      expect(shown(await post())).toEqual({ status: 200, body: text, replayed: true })
      const again = await post('/orders', zipped)
      expect([again.replayed, gunzipSync(again.body).toString()]).toEqual([true, text])
    })
  },
)

test('a page of another origin can read replays and refusals, and may send what it must', async () => {
  const app = new Hono<Env>()
  app.use(
    cors({
      origin: 'https://shop.example',
      allowHeaders: [...corsAllowedHeaders],
      exposeHeaders: [...corsExposedHeaders],
    }),
  )
  app.post('/orders', idempotent(setUp('transaction')), (c) => c.json({ id: Math.random() }))
  await on(app, async (post) => {
    const headers = { origin: 'https://shop.example' }
    const asked = await post('/orders', { method: 'OPTIONS', headers, json: undefined, key: null })
    expect(asked.headers['access-control-allow-headers']).toContain('Idempotency-Key')
    const answers = [
      await post('/orders', { headers }),
      await post('/orders', { headers }),
      await post('/orders', { headers, json: { total: 2 } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 422])
    for (const answer of answers) {
      expect(answer.headers['access-control-allow-origin']).toBe('https://shop.example')
      expect(answer.headers['access-control-expose-headers']).toContain('Idempotent-Replayed')
      expect(answer.headers.vary).toBe('Origin')
    }
  })
})
