/** Fetch-style handlers, beyond what the suite holds every adapter to: streams, thrown responses, bodies that others read. */
import { gzipSync } from 'node:zlib'
import { reply, retrysafe, type Store } from 'retrysafe'
import { idempotencyOf, idempotent } from 'retrysafe/fetch'
import { type MemoryTx, memory } from 'retrysafe/memory'
import { expect, test } from 'vitest'
import { until } from '../setup/until.js'

type Mode = 'transaction' | 'lease'

function setUp(mode: Mode, over: Partial<Store<MemoryTx>> = {}, options: object = {}) {
  const store = memory()
  return retrysafe({ store: { ...store, ...over }, mode, scope: 's', ...options })
}

function post(key: string, body: string | null = '{"a":1}', headers: Record<string, string> = {}): Request {
  const own = { 'content-type': 'application/json', 'idempotency-key': key, ...headers }
  return new Request('http://service/orders?x=1', { method: 'POST', body, headers: own })
}

function streamOf(pieces: string[], gate?: Promise<unknown>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
      await gate
      controller.close()
    },
  })
}

test.each(['transaction', 'lease'] as const)(
  'the handler’s own request is unread, and is what idempotencyOf knows (%s)',
  async (mode) => {
    const safe = setUp(mode)
    const seen: unknown[] = []
    const handler = idempotent(safe)(async (request: Request, more: string) => {
      seen.push(await request.json(), idempotencyOf(request)?.key, more)
      return Response.json({ id: 1 }, { status: 201, headers: { location: '/orders/1' } })
    })
    const first = await handler(post('k'), 'params')
    const again = await handler(post('k'), 'params')
    expect(seen).toEqual([{ a: 1 }, 'k', 'params'])
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.headers.get('location')).toBe('/orders/1')
    expect(await again.text()).toBe(await first.text())
  },
)

test('a handler may return a reply or a response', async () => {
  const safe = setUp('transaction')
  const one = idempotent(safe, {}, ({ body }) => reply(201, body))
  const other = idempotent(safe, {}, ({ key }) => Response.json({ key }))
  expect(await (await one(post('k1'))).json()).toEqual({ a: 1 })
  expect(await (await other(post('k2'))).json()).toEqual({ key: 'k2' })
  expect((await one(new Request('http://service/orders'))).status).toBe(405)
})

test('a body that was read before is refused: its retry could not be told from another request', async () => {
  const handler = idempotent(setUp('lease'))(() => new Response('never'))
  const request = post('k')
  await request.text()
  const response = await handler(request)
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ code: 'OPTION_INVALID' })
})

test('a reply larger than is remembered streams in lease mode, whole, and is not run again', async () => {
  const safe = setUp('lease', {}, { maxReplyBytes: 10 })
  let runs = 0
  const handler = idempotent(safe)(() => {
    runs += 1
    return new Response(streamOf(['12345678', '90abcdef', 'ghij']))
  })
  expect(await (await handler(post('k'))).text()).toBe('1234567890abcdefghij')
  const again = await handler(post('k'))
  expect(again.status).toBe(409)
  expect(await again.json()).toMatchObject({ code: 'NOT_REPLAYABLE', originalStatus: 200 })
  expect(runs).toBe(1)
})

test('nobody sees the end of a streamed reply before it is stored; if it cannot be, the reply breaks off (rule 8)', async () => {
  const complete = () => Promise.reject(new Error('disk full'))
  const safe = setUp('lease', { complete }, { maxReplyBytes: 4, leaseMs: 200 })
  const handler = idempotent(safe)(() => new Response(streamOf(['12345678', '90'])))
  const response = await handler(post('k'))
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow('could not be stored')
})

test('server-sent events are never held back, and are declared not replayable', async () => {
  const safe = setUp('lease')
  let end: (value?: unknown) => void = () => undefined
  const gate = new Promise((resolve) => {
    end = resolve
  })
  const handler = idempotent(safe)(
    () => new Response(streamOf(['data: 1\n\n'], gate), { headers: { 'content-type': 'text/event-stream' } }),
  )
  const response = await handler(post('k'))
  const reader = response.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: 1\n\n')
  end()
  expect((await reader?.read())?.done).toBe(true)
  expect(await (await handler(post('k'))).json()).toMatchObject({ code: 'NOT_REPLAYABLE' })
})

test('a caller that hangs up in the middle of a stream does not stop the work', async () => {
  const safe = setUp('lease', {}, { maxReplyBytes: 4 })
  const handler = idempotent(safe)(() => new Response(streamOf(['12345678', '90'])))
  const response = await handler(post('k'))
  await response.body?.cancel()
  await until(async () => (await safe.list({ states: ['done'] })).length === 1)
  expect(await (await handler(post('k'))).json()).toMatchObject({ code: 'NOT_REPLAYABLE' })
})

test('a caller that hangs up between two events does not take the work back', async () => {
  const safe = setUp('lease')
  let runs = 0
  let event: (text: string | undefined) => void = () => undefined
  const handler = idempotent(safe)(() => {
    runs += 1
    const events = new ReadableStream<Uint8Array>({
      start: (controller) => {
        event = (text) =>
          text === undefined ? controller.close() : controller.enqueue(new TextEncoder().encode(text))
      },
    })
    return new Response(events, { headers: { 'content-type': 'text/event-stream' } })
  })
  const reader = (await handler(post('k'))).body?.getReader()
  event('data: 1\n\n')
  await reader?.read()
  const waiting = reader?.read()
  await reader?.cancel()
  await waiting
  event('data: 2\n\n')
  event(undefined)
  await until(async () => (await safe.list({ states: ['running'] })).length === 0)
  expect(await (await handler(post('k'))).json()).toMatchObject({ code: 'NOT_REPLAYABLE' })
  expect(runs).toBe(1)
})

test.each(['listens', 'has hung up'] as const)(
  'a stream that outlasts its attempt is broken off, and whoever feeds it is told (the caller %s)',
  async (caller) => {
    const safe = setUp('lease', {}, { workTimeoutMs: 50, leaseMs: 50 })
    let told = false
    const handler = idempotent(safe)(() => {
      const events = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode('data: 1\n\n')),
        cancel: () => {
          told = true
        },
      })
      return new Response(events, { headers: { 'content-type': 'text/event-stream' } })
    })
    const reader = (await handler(post('k'))).body?.getReader()
    await reader?.read()
    if (caller === 'listens') await expect(reader?.read()).rejects.toThrow('could not be stored')
    else await reader?.cancel()
    await until(() => told)
  },
)

test.each([
  ['transaction', 2],
  ['lease', 1],
] as const)(
  'a response that is thrown is the answer; in %s mode the work ran %i time(s) after a retry',
  async (mode, times) => {
    const safe = setUp(mode)
    let runs = 0
    const handler = idempotent(safe)(() => {
      runs += 1
      throw new Response('no such customer', { status: 422 })
    })
    for (let tries = 0; tries < 2; tries += 1) {
      const response = await handler(post('k'))
      expect([response.status, await response.text()]).toEqual([422, 'no such customer'])
    }
    expect(runs).toBe(times)
  },
)

test('what is too large to wait for the commit is answered by us, and not thrown on', async () => {
  const mebibyte = new Uint8Array(1024 * 1024)
  const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(mebibyte) })
  const handler = idempotent(setUp('transaction'))(() => new Response(endless()))
  const answer = await handler(post('k'))
  expect(answer.status).toBe(500)
  expect(await answer.json()).toMatchObject({ code: 'REPLY_TOO_LARGE' })
})

test('the coding of a handler that streams does not stand beside the length of what was taken whole', async () => {
  const handler = idempotent(setUp('lease'))(
    () => new Response(streamOf(['1', '2']), { headers: { 'transfer-encoding': 'chunked' } }),
  )
  const { headers } = await handler(post('k'))
  expect([headers.get('transfer-encoding'), headers.get('content-length')]).toEqual([null, '2'])
})

test('a retry that comes compressed is the same request, and the handler still finds it as it was sent', async () => {
  const zipped = gzipSync('{"a":1}')
  const seen: unknown[] = []
  const handler = idempotent(setUp('lease'))(async (request: Request) => {
    seen.push(Buffer.from(await request.arrayBuffer()))
    return new Response('ok')
  })
  const compressed = () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'idempotency-key': 'k' }
    return new Request('http://service/orders?x=1', { method: 'POST', body: zipped, headers })
  }
  await handler(compressed())
  expect(seen).toEqual([zipped])
  expect((await handler(post('k'))).headers.get('idempotent-replayed')).toBe('true')
  expect((await handler(post('k', '{"a":2}'))).status).toBe(422)
  const broken = await handler(post('k2', 'no gzip', { 'content-encoding': 'gzip' }))
  expect([broken.status, await broken.json()]).toMatchObject([400, { code: 'BODY_INVALID' }])
})

test('what a handler throws is thrown on, and the key is free', async () => {
  for (const mode of ['transaction', 'lease'] as const) {
    const safe = setUp(mode)
    let fail = true
    const handler = idempotent(safe)(() => {
      if (fail) throw new Error('no stock')
      return new Response('ok')
    })
    await expect(handler(post('k'))).rejects.toThrow('no stock')
    fail = false
    expect(await (await handler(post('k'))).text()).toBe('ok')
  }
})

test.each(['transaction', 'lease'] as const)(
  'a redirect that is thrown is an answer: kept, its writes with it (%s)',
  async (mode) => {
    const safe = setUp(mode)
    let effects = 0
    const count = () => {
      effects += 1
    }
    const handler = idempotent(safe)(async (request) => {
      const attempt = idempotencyOf<MemoryTx>(request)
      if (mode === 'transaction') attempt?.tx.defer(count)
      else count()
      throw new Response(null, { status: 303, headers: { location: '/orders/1' } })
    })
    for (let tries = 0; tries < 2; tries += 1) {
      const response = await handler(post('k'))
      expect([response.status, response.headers.get('location')]).toEqual([303, '/orders/1'])
    }
    expect(effects).toBe(1)
  },
)
