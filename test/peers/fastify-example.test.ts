/** The example of docs/frameworks.md for Fastify does what the page says. */
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { send } from '../../dist/testing/http/wire.js'
import { onExample } from './frameworks-example.js'

test('Fastify: one order for a request and its retry, and a plugin around a handler that exists', () =>
  onExample<{ server: FastifyInstance }>('frameworks-fastify', async ({ server }, orders) => {
    const url = await server.listen({ port: 0, host: '127.0.0.1' })
    try {
      const order = { json: { customerId: 'c1' } }
      const first = await send(`${url}/orders`, order)
      const again = await send(`${url}/orders`, order)
      expect([first.status, first.replayed, again.replayed]).toEqual([201, false, true])
      expect(again.body).toEqual(first.body)
      expect(await orders()).toBe(1)
      for (const replayed of [false, true]) {
        const mail = await send(`${url}/v1/mails`, { key: 'k2' })
        expect([mail.status, mail.body.toString(), mail.replayed]).toEqual([202, '{"sent":true}', replayed])
      }
    } finally {
      await server.close()
    }
  }))
