/** The caller hangs up at a random moment and retries: the work is neither cancelled nor done twice. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import {
  expectOneEffect,
  type Ledger,
  openLedger,
  type Service,
  send,
  sendUntilDefinite,
  startService,
} from './service.js'

let database: FreshDatabase
let ledger: Ledger
let service: Service

beforeAll(async () => {
  database = await freshDatabase()
  ledger = await openLedger(database.connectionString)
  service = await startService(database.connectionString, { POOL_SIZE: '2' })
})

afterAll(async () => {
  await service?.kill()
  await ledger?.pool.end()
  await database?.drop()
})

test.each(['/transaction', '/existing', '/lease'])(
  'a caller of %s that hangs up at a random moment finds its one effect',
  async (path) => {
    let number = 0
    const hangUp = fc.asyncProperty(fc.integer({ min: 0, max: 60 }), async (afterMs) => {
      number += 1
      const key = `${path}-${number}`
      const control = new AbortController()
      const first = send(service.url, path, key, { workMs: 20 }, control.signal)
      const timer = setTimeout(() => control.abort(), afterMs)
      const told = await first
      clearTimeout(timer)
      const retry = await sendUntilDefinite(service.url, path, key, { workMs: 20 })
      await expectOneEffect(ledger, key, [told, retry])
    })
    await fc.assert(hangUp, { numRuns: 40 })
  },
)

test('a pool of two serves ten requests at once, on ten keys and on one', async () => {
  const keys = Array.from({ length: 10 }, (_, index) => `pool-${index}`)
  const answers = await Promise.all(
    keys.map((key) => sendUntilDefinite(service.url, '/transaction', key, { workMs: 20 })),
  )
  expect(answers.every(({ status, replayed }) => status === 201 && !replayed)).toBe(true)
  const same = await Promise.all(
    keys.map(() => sendUntilDefinite(service.url, '/transaction', 'pool', { workMs: 20 })),
  )
  await expectOneEffect(ledger, 'pool', same)
})
