/** Stopping the demo ends no request that is under way. */
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { until } from '../setup/until.js'
import { type Demo, demoFolder, removeFolder, startDemo } from './demo-process.js'

let folder: string
let database: FreshDatabase
let demo: Demo

beforeAll(async () => {
  folder = demoFolder()
  database = await freshDatabase()
  demo = await startDemo(folder, { DATABASE_URL: database.connectionString })
})

afterAll(async () => {
  await demo?.stop('SIGKILL')
  await database?.drop()
  removeFolder(folder)
})

test('a request that is under way when the demo is told to stop is answered, and the process ends by itself', async () => {
  const body = JSON.stringify({ customerId: 'late', totalCents: 5 })
  const sent = request(`${demo.url}/orders`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'content-length': body.length,
      'idempotency-key': 'late-1',
      authorization: 'Bearer alice',
      expect: '100-continue',
    },
  })
  const continued = once(sent, 'continue')
  const answered = once(sent, 'response')
  sent.flushHeaders()
  // The demo has the request, and waits for its body.
  await continued
  const gone = once(demo.process, 'exit')
  demo.process.kill('SIGTERM')
  const refused = () =>
    fetch(`${demo.url}/health`).then(
      () => false,
      () => true,
    )
  await until(refused, 'the demo stops listening')
  sent.end(body)
  const [response] = await answered
  expect({ status: response.statusCode, body: JSON.parse(await text(response)) }).toEqual({
    status: 201,
    body: { orderId: expect.anything() },
  })
  expect(await gone).toEqual([0, null])
})
