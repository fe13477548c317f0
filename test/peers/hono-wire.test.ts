/** Hono on the wire: bodies that others read, streams, events, clients that hang up, HTTP/2. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { Hono, type MiddlewareHandler } from 'hono'
import { stream, streamSSE } from 'hono/streaming'
import { expect, test } from 'vitest'
import { type HonoVariables, idempotent } from '../../dist/http/hono.js'
import { type RetrysafeOptions, reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { planFaults, withFaults } from '../../dist/testing/index.js'
import { until } from '../setup/until.js'
import { listen } from './hono-site.js'

type Env = { Variables: HonoVariables<MemoryTx> }
type Mode = 'transaction' | 'lease'
const modes = ['transaction', 'lease'] as const

function setUp(mode: Mode, options: Partial<RetrysafeOptions<MemoryTx>> = {}) {
  return retrysafe<MemoryTx>({ store: memory(), mode, scope: 's', ...options })
}

async function on(app: Hono<Env>, body: (url: string) => Promise<void>): Promise<void> {
  const server = await listen(app)
  try {
    await body(server.url)
  } finally {
    await server.close()
  }
}

function post(url: string, body?: RequestInit['body'], init: RequestInit = {}): Promise<Response> {
  const headers = { 'idempotency-key': 'k1', ...(init.headers as Record<string, string>) }
  return fetch(`${url}/orders`, { method: 'POST', ...(body !== undefined && { body }), ...init, headers })
}

const isReplay = ({ headers }: Response) => headers.get('idempotent-replayed') === 'true'

/** Ways in which middleware mounted before ours may have read a form. */
const formReaders: Record<string, MiddlewareHandler> = {
  parseBody: async (c, next) => {
    await c.req.parseBody()
    await next()
  },
  formData: async (c, next) => {
    await c.req.formData()
    await next()
  },
  text: async (c, next) => {
    await c.req.text()
    await next()
  },
  'nobody reads': (_c, next) => next(),
}

test.each(Object.entries(formReaders))(
  'multipart counts by fields and files, whatever boundary it is sent with (read before by: %s)',
  async (_, reader) => {
    const form = (content: string) => {
      const made = new FormData()
      made.append('name', 'alice')
      made.append('file', new File([content], 'a.txt', { type: 'text/plain' }))
      return made
    }
    const app = new Hono<Env>()
    app.post('/orders', reader, idempotent(setUp('transaction')), async (c) => {
      const { name, file } = await c.req.parseBody()
      return c.text(`${name}: ${await (file as File).text()}`)
    })
    await on(app, async (url) => {
      expect(await (await post(url, form('one'))).text()).toBe('alice: one')
      const again = await post(url, form('one'))
      expect([isReplay(again), await again.text()]).toEqual([true, 'alice: one'])
      expect((await post(url, form('two'))).status).toBe(422)
    })
  },
)

test.each(Object.entries(formReaders))('a key may come in a form (read before by: %s)', async (_, reader) => {
  const app = new Hono<Env>()
  let runs = 0
  app.post(
    '/orders',
    reader,
    idempotent(setUp('transaction', {}), { formField: 'key' }, ({ c }) => {
      runs += 1
      return reply(200, c.get('idempotency') === undefined)
    }),
  )
  await on(app, async (url) => {
    const send = (total: string) =>
      fetch(`${url}/orders`, { method: 'POST', body: new URLSearchParams({ key: 'k1', total }) })
    expect((await send('1')).status).toBe(200)
    expect(isReplay(await send('1'))).toBe(true)
    // A changed form is a new intent.
    expect(isReplay(await send('2'))).toBe(false)
    expect(
      (await fetch(`${url}/orders`, { method: 'POST', body: new URLSearchParams({ total: '1' }) })).status,
    ).toBe(400)
    expect(runs).toBe(2)
  })
})

test.each([true, false])(
  'JSON counts by exact value, and the handler reads it again (read before us: %s)',
  async (before) => {
    const app = new Hono<Env>()
    if (before)
      app.use(async (c, next) => {
        await c.req.json()
        await next()
      })
    app.post('/orders', idempotent(setUp('lease')), async (c) => c.json(await c.req.json()))
    await on(app, async (url) => {
      const json = (text: string) => post(url, text, { headers: { 'content-type': 'application/json' } })
      expect(await (await json('{"id":9007199254740992}')).text()).toBe('{"id":9007199254740992}')
      expect((await json('{"id":9007199254740993}')).status).toBe(422)
      expect(isReplay(await json(' {"id": 9007199254740992.0}'))).toBe(true)
    })
  },
)

test('bytes count as they are, and the handler finds them unread', async () => {
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp('lease')), async (c) => c.body(await c.req.raw.arrayBuffer()))
  await on(app, async (url) => {
    const bytes = Uint8Array.of(0, 255, 128, 10)
    expect(new Uint8Array(await (await post(url, bytes)).arrayBuffer())).toEqual(bytes)
    expect(isReplay(await post(url, bytes))).toBe(true)
    expect((await post(url, Uint8Array.of(0))).status).toBe(422)
  })
})

test('a body that was read past Hono is refused: its retry could not be told from another request', async () => {
  const app = new Hono<Env>()
  app.use(async (c, next) => {
    await c.req.raw.text()
    await next()
  })
  app.post('/orders', idempotent(setUp('lease')), (c) => c.text('never'))
  await on(app, async (url) => {
    const answer = await post(url, 'text')
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'OPTION_INVALID' }])
  })
})

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
