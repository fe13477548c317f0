/**
 * A route module of Next.js behind `retrysafe/fetch`, called as Next calls it. `next` itself is not run here: `NextRequest` and the proxy that
 * Next puts around it are written again, and so is what its `redirect` throws.
 */
import { beforeEach, expect, test } from 'vitest'
import { effects, GET, NextRequest, PATCH, POST } from './next-route.js'

/** Next tracks who looks at a request by a proxy, whose functions are bound to the request behind it. */
function tracked<Target extends Request>(request: Target): Target {
  return new Proxy(request, {
    get(target, name) {
      if (name === 'clone') return () => tracked(target.clone())
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** What is thrown beyond the handler Next answers by its digest. */
async function called(handler: () => Promise<Response>): Promise<{ response?: Response; digest?: unknown }> {
  try {
    return { response: await handler() }
  } catch (error) {
    return { digest: (error as { digest?: unknown }).digest }
  }
}

let key = 0
beforeEach(() => {
  key += 1
  effects.length = 0
})

function request(method: string, query = '', body: object = { total: 1 }): NextRequest {
  const headers = { authorization: 'alice', 'idempotency-key': `k${key}`, 'content-type': 'application/json' }
  const sent = method === 'GET' ? {} : { body: JSON.stringify(body) }
  return tracked(new NextRequest(`http://shop.example/orders/7${query}`, { method, headers, ...sent }))
}

const context = () => ({ params: Promise.resolve({ id: '7' }) })
const isReplay = ({ headers }: Response) => headers.get('idempotent-replayed') === 'true'

test('a handler that exists has its request, its parameters and its attempt, and takes effect once', async () => {
  const first = await POST(request('POST'), context())
  const again = await POST(request('POST'), context())
  expect([first.status, isReplay(first), isReplay(again)]).toEqual([201, false, true])
  const answer = await first.json()
  expect(answer).toMatchObject({ id: '7', attempt: 1 })
  expect(await again.json()).toEqual(answer)
  expect(effects).toEqual(['7: 1'])
  expect((await POST(request('POST', '', { total: 2 }), context())).status).toBe(422)
})

test('a handler that returns a reply is a route too', async () => {
  const first = await PATCH(request('PATCH'))
  const again = await PATCH(request('PATCH'))
  expect([isReplay(first), isReplay(again), await again.text()]).toEqual([false, true, await first.text()])
  expect(effects).toEqual(['patched: 1'])
})

test('redirect() is an answer, though it throws: its writes stand, and a retry is sent the same way', async () => {
  for (const replayed of [false, true]) {
    const { response } = await called(() => POST(request('POST', '?thanks'), context()))
    expect([response?.status, response?.headers.get('location')]).toEqual([307, '/orders/7?thanks=1;2'])
    expect(response && isReplay(response)).toBe(replayed)
  }
  expect(effects).toEqual(['7: 1'])
})

test('notFound() is a throw: Next answers it, its writes are undone and the key is free', async () => {
  for (let tries = 0; tries < 2; tries += 1) {
    const { digest } = await called(() => POST(request('POST', '?missing'), context()))
    expect(digest).toBe('NEXT_HTTP_ERROR_FALLBACK;404')
  }
  expect(effects).toEqual([])
})

test('GET passes', async () => {
  effects.push('seen')
  expect(await (await GET(request('GET'))).json()).toEqual(['seen'])
})
