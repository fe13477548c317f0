/** The example of docs/frameworks.md for Nest does what the page says. */
import type { INestApplication } from '@nestjs/common'
import { expect, test } from 'vitest'
import { send } from '../../dist/testing/http/wire.js'
import { onExample } from './frameworks-example.js'

test('Nest: one order for a request and its retry, and a method that exists is kept as it answers', () =>
  onExample<{ nest: INestApplication }>('frameworks-nest', async ({ nest }, orders) => {
    await nest.listen(0, '127.0.0.1')
    const url = await nest.getUrl()
    try {
      const order = { json: { customerId: 'c1' } }
      const first = await send(`${url}/orders`, order)
      const again = await send(`${url}/orders`, order)
      expect([first.status, first.replayed, again.replayed]).toEqual([201, false, true])
      expect(again.body).toEqual(first.body)
      expect(await orders()).toBe(1)
      const mail = await send(`${url}/mails`, { key: 'k2' })
      expect([mail.status, mail.body.toString()]).toEqual([202, '{"sent":true}'])
    } finally {
      await nest.close()
    }
  }))
