/** The example of docs/frameworks.md for AWS Lambda does what the page says. */
import { expect, test } from 'vitest'
import { send } from '../../dist/testing/http/wire.js'
import { onExample } from './frameworks-example.js'
import { type Invoked, listen } from './lambda-site.js'

test('Lambda: one order for a request and its retry, and a handler that exists is given its attempt', () =>
  onExample<{ orders: Invoked; mails: Invoked }>('frameworks-lambda', async ({ orders, mails }, count) => {
    const server = await listen('2.0', (_method, path) => (path === '/orders' ? orders : mails))
    try {
      const order = { json: { customerId: 'c1' } }
      const first = await send(`${server.url}/orders`, order)
      const again = await send(`${server.url}/orders`, order)
      expect([first.status, first.replayed, again.replayed]).toEqual([201, false, true])
      expect(again.body).toEqual(first.body)
      expect(await count()).toBe(1)
      const mail = await send(`${server.url}/mails`, { key: 'k2' })
      expect([mail.status, mail.body.toString()]).toEqual([202, '1'])
    } finally {
      await server.close()
    }
  }))
