/** The example of docs/frameworks.md for Next.js does what the page says. Its constants are called as Next calls them; `next` is not run. */
import { expect, test } from 'vitest'
import { onExample } from './frameworks-example.js'

type Route = (request: Request, context: { params: Promise<{ id: string }> }) => Promise<Response>

function request(method: string, key: string): Request {
  const headers = { authorization: 'alice', 'idempotency-key': key, 'content-type': 'application/json' }
  return new Request('http://shop.example/orders', { method, headers, body: '{"customerId":"c1"}' })
}

test('Next.js: one order for a request and its retry, and a handler that exists is given its attempt', () =>
  onExample<{ POST: Route; PUT: Route }>('frameworks-next', async ({ POST, PUT }, orders) => {
    const context = { params: Promise.resolve({ id: '7' }) }
    const first = await POST(request('POST', 'k1'), context)
    const again = await POST(request('POST', 'k1'), context)
    expect([first.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(await again.text()).toBe(await first.text())
    expect(await orders()).toBe(1)
    const mail = await PUT(request('PUT', 'k2'), context)
    expect([mail.status, await mail.json()]).toEqual([202, { id: '7', attempt: 1 }])
  }))
