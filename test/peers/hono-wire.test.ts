/** Hono on the wire: streams, events, clients that hang up, late answers, HTTP/2. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono, type MiddlewareHandler } from 'hono'
import { stream, streamSSE } from 'hono/streaming'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/hono.js'
import { memory } from '../../dist/stores/memory.js'
import { planFaults, withFaults } from '../../dist/testing/index.js'
import { until } from '../setup/until.js'
import { type Env, isReplay, modes, on, post, setUp } from './hono-room.js'

test('server-sent events are never held back in lease mode, and are declared not replayable', async () => {
  let end: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    end = resolve
  })
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp('lease')), (c) =>
    streamSSE(c, async (out) => {
      await out.writeSSE({ data: 'one' })
      await gate
      await out.writeSSE({ data: 'two' })
    }),
  )
  await on(app, async (url) => {
    const answer = await post(url)
    const reader = answer.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('one')
    expect((await post(url)).status).toBe(409)
    end()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('two')
    expect((await reader?.read())?.done).toBe(true)
    expect(await (await post(url)).json()).toMatchObject({ code: 'NOT_REPLAYABLE' })
  })
})

/** A stream of 400 kB in pieces. */
const large: MiddlewareHandler = async (c) =>
  stream(c, async (out) => {
    for (let piece = 0; piece < 40; piece += 1) await out.write('x'.repeat(10_000))
  })

test('a stream over what is remembered reaches its first caller whole, and is not run again', async () => {
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp('lease', { maxReplyBytes: 1000 })), large)
  await on(app, async (url) => {
    expect(await (await post(url)).text()).toBe('x'.repeat(400_000))
    expect(await (await post(url)).json()).toMatchObject({ code: 'NOT_REPLAYABLE', originalStatus: 200 })
  })
})

test('nobody sees the end of a stream whose outcome could not be stored: the connection breaks off', async () => {
  const faults = planFaults()
  for (const point of ['complete', 'renew'] as const) faults.always(point, 'failBefore')
  const store = withFaults(memory(), faults)
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp('lease', { store, maxReplyBytes: 1000, leaseMs: 200 })), large)
  await on(app, async (url) => {
    const answer = await post(url)
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
  })
})

test('what is too large to wait for the commit is a failure of ours, and the key is free', async () => {
  const app = new Hono<Env>()
  const mebibyte = 'x'.repeat(1024 * 1024)
  app.post('/orders', idempotent(setUp('transaction')), (c) =>
    stream(c, async (out) => {
      for (let piece = 0; piece < 20 && !out.aborted; piece += 1) await out.write(mebibyte)
    }),
  )
  await on(app, async (url) => {
    for (let tries = 0; tries < 2; tries += 1)
      expect(await (await post(url)).json()).toMatchObject({ code: 'REPLY_TOO_LARGE' })
  })
})

test.each(modes)(
  'a client that hangs up changes nothing: the work ends, and its retry gets the answer (%s)',
  async (mode) => {
    let entered: () => void = () => undefined
    const underWay = new Promise<void>((resolve) => {
      entered = resolve
    })
    let runs = 0
    const app = new Hono<Env>()
    const safe = setUp(mode)
    app.post('/orders', idempotent(safe), async (c) => {
      runs += 1
      entered()
      await new Promise((resolve) => c.req.raw.signal.addEventListener('abort', resolve))
      return c.json({ id: 1 }, 201)
    })
    await on(app, async (url) => {
      const hangUp = new AbortController()
      const cut = post(url, undefined, { signal: hangUp.signal })
      await underWay
      hangUp.abort()
      await expect(cut).rejects.toThrow()
      await until(async () => (await safe.list({ states: ['done'] })).length === 1)
      const again = await post(url)
      expect([again.status, isReplay(again), runs]).toEqual([201, true, 1])
    })
  },
)

test.each(modes)(
  'work that takes too long is answered for, and what it says later is nobody’s answer (%s)',
  async (mode) => {
    let gate: Promise<void> | undefined
    const app = new Hono<Env>()
    const late: string[] = []
    app.onError((error, c) => {
      late.push(error.message)
      return c.text('late', 500)
    })
    // Somebody outside takes time, too: the late answer is given while the response is still in the context.
    app.use(async (_c, next) => {
      const told = late.length
      let go: () => void = () => undefined
      gate = new Promise((resolve) => {
        go = resolve
      })
      await next()
      go()
      await until(() => late.length > told)
    })
    app.post('/orders', idempotent(setUp(mode, { workTimeoutMs: 50, leaseMs: 50 })), async (c) => {
      await gate
      c.header('x-late', '1')
      throw new Error('too late')
    })
    const returning = idempotent(setUp(mode, { workTimeoutMs: 50, leaseMs: 50 }), {}, async ({ c }) => {
      await gate
      late.push('returned')
      return c.json({ done: true }, 201, { 'x-late': '1' })
    })
    app.post('/returns/orders', returning)
    await on(app, async (url) => {
      for (const at of [url, `${url}/returns`]) {
        const answer = await post(at)
        expect([answer.status, answer.headers.get('x-late')]).toEqual([503, null])
      }
      expect(late).toEqual(['too late', 'returned'])
    })
  },
)

test('a handler that writes to the response of Node is told that its answer is not kept', async () => {
  const app = new Hono<Env>()
  const errors: string[] = []
  app.onError((error) => {
    errors.push(error.message)
    return RESPONSE_ALREADY_SENT
  })
  const safe = setUp('lease')
  app.post('/orders', idempotent(safe), ({ env }) => {
    const { outgoing } = env as HttpBindings
    outgoing.writeHead(200).end('by myself')
    return RESPONSE_ALREADY_SENT
  })
  await on(app, async (url) => {
    expect(await (await post(url)).text()).toBe('by myself')
    expect(errors).toEqual([expect.stringContaining('must return its response')])
    expect((await safe.list({ states: ['done'] })).length).toBe(0)
  })
})

test('an application that is mounted is not given its prefix: an operation tells two of them apart', async () => {
  const mounted = (operation?: string) => {
    const own = new Hono<Env>()
    own.post('/orders', idempotent(safe, operation === undefined ? {} : { operation }), (c) =>
      c.text(c.req.url),
    )
    return own
  }
  const safe = setUp('lease')
  const app = new Hono<Env>()
  for (const prefix of ['/a', '/b']) app.mount(prefix, mounted().fetch)
  for (const prefix of ['/c', '/d']) app.mount(prefix, mounted(prefix.slice(1)).fetch)
  await on(app, async (url) => {
    const answers: boolean[] = []
    for (const prefix of ['/a', '/b', '/c', '/d']) answers.push(isReplay(await post(url + prefix)))
    expect(answers).toEqual([false, true, false, false])
  })
})

test('a request that broke off in its body claims nothing', async () => {
  const app = new Hono<Env>()
  const safe = setUp('lease')
  const errors: string[] = []
  let entered: () => void = () => undefined
  const underWay = new Promise<void>((resolve) => {
    entered = resolve
  })
  const scope = () => {
    entered()
    return 's'
  }
  app.onError((error, c) => {
    errors.push(error.message)
    return c.text('', 400)
  })
  app.post('/orders', idempotent(safe, { scope }), (c) => c.text('never'))
  await on(app, async (url) => {
    const cut = request(`${url}/orders`, {
      method: 'POST',
      headers: { 'idempotency-key': 'k1', 'content-length': 100 },
    })
    cut.on('error', () => undefined)
    cut.write('{"a":1}')
    await underWay
    cut.destroy()
    await until(async () => errors.length === 1)
    expect(await safe.list()).toEqual([])
  })
})

test.each(modes)('over HTTP/2 it is the same (%s)', async (mode) => {
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp(mode)), async (c) =>
    c.json({ id: Math.random(), ...(await c.req.json()) }, 201),
  )
  app.post('/stream', idempotent(setUp(mode, { maxReplyBytes: 1000 })), large)
  const server = createAdaptorServer({ fetch: app.fetch, createServer } as Parameters<
    typeof createAdaptorServer
  >[0])
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const send = async (path: string, key: string, body: string) => {
    const sent = session.request({
      ':method': 'POST',
      ':path': path,
      'idempotency-key': key,
      'content-type': 'application/json',
    })
    sent.end(body)
    const [headers] = (await once(sent, 'response')) as [Record<string, string | number>]
    const pieces: Buffer[] = []
    for await (const piece of sent) pieces.push(piece as Buffer)
    return {
      status: headers[':status'],
      replayed: headers['idempotent-replayed'],
      text: Buffer.concat(pieces).toString(),
    }
  }
  try {
    const first = await send('/orders', 'k1', '{"a":1}')
    expect(first).toMatchObject({ status: 201, text: expect.stringContaining('"a":1') })
    expect(await send('/orders', 'k1', '{"a":1}')).toEqual({ ...first, replayed: 'true' })
    expect(await send('/orders', 'k1', '{"a":2}')).toMatchObject({ status: 422 })
    expect(await send('/orders', '', '{"a":2}')).toMatchObject({ status: 400 })
    expect((await send('/stream', 'k2', '{}')).text).toBe('x'.repeat(400_000))
    expect(await send('/stream', 'k2', '{}')).toMatchObject({ status: 409 })
  } finally {
    session.close()
    server.close()
    await once(server, 'close')
  }
})
