/** AWS Lambda, beyond what the suite holds every adapter to: both formats of events and results, freezing, time limits. */
import type { APIGatewayProxyEvent, APIGatewayProxyEventV2 } from 'aws-lambda'
import { expect, test } from 'vitest'
import { idempotencyOf, idempotent, type LambdaEvent, type LambdaResult } from '../../dist/http/lambda.js'
import { type RetrysafeOptions, reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { send } from '../../dist/testing/http/wire.js'
import { listen } from './lambda-site.js'

type Mode = 'transaction' | 'lease'
const modes = ['transaction', 'lease'] as const
const formats = ['1.0', '2.0'] as const

function setUp(mode: Mode, options: Partial<RetrysafeOptions<MemoryTx>> = {}) {
  return retrysafe<MemoryTx>({ store: memory(), mode, scope: 's', ...options })
}

function eventV1(over: Partial<APIGatewayProxyEvent> = {}): APIGatewayProxyEvent {
  const headers = { 'idempotency-key': 'k1', 'content-type': 'application/json', ...over.headers }
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  return {
    httpMethod: 'POST',
    path: '/orders',
    resource: '/orders',
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    pathParameters: null,
    stageVariables: null,
    requestContext: { path: '/prod/orders' },
    body: '{"total":1}',
    isBase64Encoded: false,
    multiValueHeaders: lists,
    ...over,
    headers,
  } as APIGatewayProxyEvent
}

function eventV2(over: Partial<APIGatewayProxyEventV2> = {}): APIGatewayProxyEventV2 {
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: '/orders',
    rawQueryString: '',
    requestContext: { http: { method: 'POST', path: '/orders' } },
    body: '{"total":1}',
    isBase64Encoded: false,
    ...over,
    headers: { 'idempotency-key': 'k1', 'content-type': 'application/json', ...over.headers },
  } as APIGatewayProxyEventV2
}

const eventOf = { '1.0': eventV1, '2.0': eventV2 }

const isReplay = ({ headers, multiValueHeaders }: LambdaResult) =>
  (multiValueHeaders?.['idempotent-replayed']?.[0] ?? headers['idempotent-replayed']) === 'true'
const codeOf = ({ body }: LambdaResult) => JSON.parse(body).code as string
const as = (result: unknown) => result as LambdaResult

test('format 1.0: headers and cookies in lists reach the first caller; a retry gets what is kept', async () => {
  const handler = idempotent(setUp('transaction'))(async (_event: APIGatewayProxyEvent) => ({
    statusCode: 201,
    headers: { 'X-One': 1, Location: '/orders/1', Vary: 'never seen' },
    multiValueHeaders: { 'Set-Cookie': ['a=1', 'b=2'], vary: ['origin', 'accept'] },
    body: '{"id":1}',
  }))
  const first = as(await handler(eventV1()))
  expect(first).toEqual({
    statusCode: 201,
    headers: {},
    multiValueHeaders: {
      'x-one': ['1'],
      location: ['/orders/1'],
      'set-cookie': ['a=1', 'b=2'],
      vary: ['origin', 'accept'],
    },
    body: '{"id":1}',
    isBase64Encoded: false,
  })
  const again = as(await handler(eventV1()))
  expect([isReplay(again), again.body]).toEqual([true, first.body])
  expect(again.multiValueHeaders).toMatchObject({ location: ['/orders/1'], vary: ['origin', 'accept'] })
  expect(again.multiValueHeaders?.['set-cookie']).toBeUndefined()
})

test('format 2.0: cookies apart, and headers joined', async () => {
  const handler = idempotent(setUp('transaction'), {}, () =>
    reply(201, { id: 1 }, { 'set-cookie': ['a=1', 'b=2'], vary: ['origin', 'accept'] }),
  )
  const first = await handler(eventV2())
  expect(first).toMatchObject({ cookies: ['a=1', 'b=2'], headers: { vary: 'origin, accept' } })
  const again = await handler(eventV2())
  expect([isReplay(again), again.cookies, again.headers.vary]).toEqual([true, [], 'origin, accept'])
})

test.each([
  ['a text', 'hello', 'hello'],
  ['an object', { id: 1 }, '{"id":1}'],
  ['nothing', undefined, 'null'],
])('format 2.0: what API Gateway makes of %s is what is kept', async (_, result, body) => {
  const handler = idempotent(setUp('lease'))(async (_event: APIGatewayProxyEventV2) => result)
  for (const replayed of [false, true]) {
    const answer = as(await handler(eventV2()))
    expect(answer).toMatchObject({ statusCode: 200, body, headers: { 'content-type': 'application/json' } })
    expect(isReplay(answer)).toBe(replayed)
  }
})

test.each([
  ['no status', { body: 'x' }],
  ['a status that is none', { statusCode: 99, body: '' }],
  ['a body that is no text', { statusCode: 200, body: { id: 1 } }],
  ['nothing', undefined],
])('format 1.0: %s would be malformed: nothing of it is kept', async (_, result) => {
  const safe = setUp('transaction')
  const handler = idempotent(safe)(async (_event: APIGatewayProxyEvent) => result)
  const answer = as(await handler(eventV1()))
  expect([answer.statusCode, codeOf(answer)]).toEqual([500, 'OPTION_INVALID'])
  expect(await safe.list()).toEqual([])
})

test.each(formats)('bytes come and go in base64, and text as text (%s)', async (format) => {
  const bytes = Buffer.from([0, 255, 128, 10])
  const seen: unknown[] = []
  const handler = idempotent(setUp('transaction'), {}, ({ body }) => {
    seen.push(body)
    return reply(200, body, { 'content-type': 'image/x-own' })
  })
  const event = () =>
    eventOf[format]({
      body: bytes.toString('base64'),
      isBase64Encoded: true,
      headers: { 'content-type': 'application/octet-stream' },
    })
  for (const replayed of [false, true]) {
    const answer = await handler(event())
    expect([answer.isBase64Encoded, answer.body, isReplay(answer)]).toEqual([
      true,
      bytes.toString('base64'),
      replayed,
    ])
  }
  expect(seen).toEqual([bytes])
  const text = await handler(eventOf[format]({ body: '{"a":"é"}', headers: { 'idempotency-key': 'k2' } }))
  expect([text.isBase64Encoded, text.body]).toEqual([false, '{"a":"é"}'])
})

test('a JSON body in base64 is the same as in text', async () => {
  const handler = idempotent(setUp('transaction'), {}, ({ body }) => reply(200, body))
  const first = await handler(eventV2())
  const coded = { body: Buffer.from('{ "total": 1.0 }').toString('base64'), isBase64Encoded: true }
  const again = await handler(eventV2(coded))
  expect([first.body, again.body, isReplay(again)]).toEqual(['{"total":1}', '{"total":1}', true])
})

test('format 1.0: the stage counts, parameters in lists count, and their order does not', async () => {
  const handler = idempotent(setUp('transaction'), {}, () => reply(200))
  const query = (lists: Record<string, string[]>, path = '/prod/orders') =>
    handler(
      eventV1({
        multiValueQueryStringParameters: lists,
        requestContext: { path } as APIGatewayProxyEvent['requestContext'],
      }),
    )
  expect(isReplay(await query({ a: ['1', '2'], b: ['&x=1'] }))).toBe(false)
  expect(isReplay(await query({ b: ['&x=1'], a: ['1', '2'] }))).toBe(true)
  expect(codeOf(await query({ a: ['1'], b: ['&x=1'] }))).toBe('KEY_REUSED')
  expect(codeOf(await query({ a: ['1', '2'], b: [''], x: ['1'] }))).toBe('KEY_REUSED')
  expect(codeOf(await query({ a: ['1', '2'], b: ['&x=1'] }, '/test/orders'))).toBe('KEY_REUSED')
})

test('a path that came decoded is not taken for a path with a query', async () => {
  const handler = idempotent(setUp('transaction'), {}, () => reply(200))
  await handler(eventV2({ rawPath: '/orders?a=1' }))
  expect(codeOf(await handler(eventV2({ rawPath: '/orders', rawQueryString: 'a=1' })))).toBe('KEY_REUSED')
})

test.each(modes)('a throw frees the key and fails the invocation: 502 from a REST API (%s)', async (mode) => {
  let fails = true
  const handler = idempotent(setUp(mode))(async (_event: LambdaEvent) => {
    if (fails) throw new Error('no stock')
    return { statusCode: 201, body: '' }
  })
  const server = await listen('1.0', () => handler)
  try {
    expect((await send(`${server.url}/orders`)).status).toBe(502)
    fails = false
    expect((await send(`${server.url}/orders`)).status).toBe(201)
    expect((await send(`${server.url}/orders`)).replayed).toBe(true)
  } finally {
    await server.close()
  }
})

test.each(modes)(
  'when the answer is given nothing of ours is under way: the process may be frozen (%s)',
  async (mode) => {
    const store = memory()
    let underWay = 0
    /** Every call of the store takes turns of the event loop, and is counted while it does. */
    function counted<Value>(value: Value): Value {
      if (typeof value === 'function') {
        return (async (...values: unknown[]) => {
          underWay += 1
          for (let turns = 0; turns < 3; turns += 1) await new Promise((resume) => setImmediate(resume))
          try {
            return watched(await value(...values))
          } finally {
            underWay -= 1
          }
        }) as Value
      }
      return value
    }
    function watched<Value>(value: Value): Value {
      if (typeof value !== 'object' || value === null || !('save' in value)) return value
      const { save, rollback } = value as Record<string, unknown>
      return { ...value, save: counted(save), rollback: counted(rollback) }
    }
    const { transactions } = store
    const slow = {
      ...store,
      claim: counted(store.claim),
      complete: counted(store.complete),
      release: counted(store.release),
      ...(transactions && { transactions: { ...transactions, begin: counted(transactions.begin) } }),
    }
    const handler = idempotent(setUp(mode, { store: slow }))(async (event: APIGatewayProxyEventV2) => ({
      statusCode: event.body === '1' ? 500 : 201,
      body: String(idempotencyOf(event)?.key),
    }))
    for (const [key, body] of [
      ['k1', '0'],
      ['k1', '0'],
      ['k2', '1'],
      ['k1', '2'],
    ] as const) {
      await handler(eventV2({ body, headers: { 'idempotency-key': key } }))
      expect([key, body, underWay]).toEqual([key, body, 0])
    }
  },
)

test('work that would outlast the invocation is rolled back and answered before Lambda ends it', async () => {
  const handler = idempotent(setUp('transaction'))(
    async (_event: APIGatewayProxyEventV2, _context: object) => {
      if (hangs) await new Promise(() => undefined)
      return { statusCode: 201 }
    },
  )
  let hangs = true
  const late = as(await handler(eventV2(), { getRemainingTimeInMillis: () => 520 }))
  expect([late.statusCode, codeOf(late), late.headers['retry-after']]).toEqual([
    503,
    'WORK_TIMEOUT',
    expect.any(String),
  ])
  hangs = false
  const again = as(await handler(eventV2(), { getRemainingTimeInMillis: () => 520 }))
  expect([again.statusCode, isReplay(again)]).toEqual([201, false])
})

test('a duplicate waits no longer than its invocation has left', async () => {
  const safe = setUp('lease', { whileRunning: { waitMs: 60_000 } })
  let go: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const handler = idempotent(safe, {}, async () => {
    await gate
    return reply(201)
  })
  const first = handler(eventV2())
  const waiting = await handler(eventV2(), { getRemainingTimeInMillis: () => 520 })
  expect(codeOf(waiting)).toBe('IN_PROGRESS')
  go()
  expect((await first).statusCode).toBe(201)
})

test('two sandboxes share nothing but the store: one works, the other says so', async () => {
  const store = memory()
  let go: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const sandbox = () =>
    idempotent(setUp('lease', { store }), {}, async ({ commit }) => {
      await gate
      return commit(() => reply(201, { done: true }))
    })
  const [one, other] = [sandbox(), sandbox()]
  const first = one(eventV2())
  const second = await other(eventV2())
  expect([second.statusCode, codeOf(second)]).toEqual([409, 'IN_PROGRESS'])
  go()
  expect((await first).statusCode).toBe(201)
  expect(isReplay(await other(eventV2()))).toBe(true)
})

test('a handler that takes a callback is refused: nobody could wait for it', () => {
  const withCallback = (_event: LambdaEvent, _context: unknown, callback: () => void) => callback()
  expect(() => idempotent(setUp('lease'))(withCallback)).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})

test('a method that is not covered passes to a handler that exists, and its result is left as it is', async () => {
  const safe = setUp('lease')
  const get = eventV2({
    requestContext: { http: { method: 'GET' } } as APIGatewayProxyEventV2['requestContext'],
  })
  expect(await idempotent(safe)(async (_event: APIGatewayProxyEventV2) => 'plain')(get)).toBe('plain')
  expect(await idempotent(safe, {}, () => reply(200))(get)).toMatchObject({ statusCode: 405 })
})

test('an event that is no request passes, so that a sandbox can be kept warm', async () => {
  const warm = { source: 'aws.events', 'detail-type': 'Scheduled Event' } as unknown as LambdaEvent
  expect(await idempotent(setUp('lease'))(async (_event: LambdaEvent) => 'warm')(warm)).toBe('warm')
  expect(await idempotent(setUp('lease'), {}, () => reply(200))(warm)).toMatchObject({ statusCode: 405 })
})

test('a load balancer that sends no lists is answered without them', async () => {
  const handler = idempotent(setUp('transaction'), {}, () =>
    reply(201, { id: 1 }, { 'set-cookie': ['a=1', 'b=2'], vary: ['origin', 'accept'] }),
  )
  const event = {
    ...eventV1(),
    multiValueHeaders: undefined,
    requestContext: { elb: {} },
  } as unknown as LambdaEvent
  const first = await handler(event)
  expect(first).toEqual({
    statusCode: 201,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'set-cookie': 'b=2',
      vary: 'origin, accept',
    },
    body: '{"id":1}',
    isBase64Encoded: false,
  })
  expect(isReplay(await handler({ ...event }))).toBe(true)
})
