/** The example of docs/frameworks.md for Hono does what the page says. */
import type { Hono } from 'hono'
import { expect, test } from 'vitest'
import { send } from '../../dist/testing/http/wire.js'
import { onExample } from './frameworks-example.js'
import { listen } from './hono-site.js'

test('Hono: one order for a request and its retry, and a handler that exists is given its attempt', () =>
  onExample<{ hono: Hono }>('frameworks-hono', async ({ hono }, orders) => {
    const server = await listen(hono)
    try {
      const order = { json: { customerId: 'c1' } }
      const first = await send(`${server.url}/orders`, order)
      const again = await send(`${server.url}/orders`, order)
      expect([first.status, first.replayed, again.replayed]).toEqual([201, false, true])
      expect(again.body).toEqual(first.body)
      expect(await orders()).toBe(1)
      const mail = await send(`${server.url}/mails`, { key: 'k2' })
      expect([mail.status, mail.body.toString()]).toEqual([202, '{"attempt":1}'])
    } finally {
      await server.close()
    }
  }))
