/** The example of docs/frameworks.md for Koa does what the page says. */
import type { RequestListener } from 'node:http'
import type Koa from 'koa'
import { expect, test } from 'vitest'
import { send } from '../../dist/testing/http/wire.js'
import { onExample } from './frameworks-example.js'
import { listen } from './koa-site.js'

test('Koa: one order for a request and its retry, and middleware around a handler that exists', () =>
  onExample<{ koa: Koa }>('frameworks-koa', async ({ koa }, orders) => {
    const server = await listen(koa.callback() as RequestListener)
    try {
      const order = { json: { customerId: 'c1' } }
      const first = await send(`${server.url}/v1/orders`, order)
      const again = await send(`${server.url}/v1/orders`, order)
      expect([first.status, first.replayed, again.replayed]).toEqual([201, false, true])
      expect(again.body).toEqual(first.body)
      expect(await orders()).toBe(1)
      for (const replayed of [false, true]) {
        const mail = await send(`${server.url}/v1/mails`, { key: 'k2' })
        expect([mail.status, mail.body.toString(), mail.replayed]).toEqual([202, '{"sent":true}', replayed])
      }
    } finally {
      await server.close()
    }
  }))
