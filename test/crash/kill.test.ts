/** kill -9 of the service at each point of a request, then retry: one effect, one answer. */
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
let steady: Service

beforeAll(async () => {
  database = await freshDatabase()
  ledger = await openLedger(database.connectionString)
  steady = await startService(database.connectionString)
})

afterAll(async () => {
  await steady?.kill()
  await ledger?.pool.end()
  await database?.drop()
})

test.each(['/transaction', '/existing', '/lease'])(
  'a service that is killed at any point of POST %s leaves one effect for the retry to find or to make',
  async (path) => {
    await steady.arm(0, 'before')
    expect((await send(steady.url, path, `${path}-dry`))?.status).toBe(201)
    const crossings = await steady.count()
    // Begin flight, the work's statement, save flight, reply; a lease adds its claim.
    expect(crossings).toBeGreaterThanOrEqual(4)
    for (let at = 1; at <= crossings; at += 1) {
      for (const moment of ['before', 'after'] as const) {
        const key = `${path}-${at}-${moment}`
        const doomed = await startService(database.connectionString)
        await doomed.arm(at, moment)
        const first = await send(doomed.url, path, key)
        await doomed.kill()
        expect(doomed.process.signalCode, key).toBe('SIGKILL')
        const retry = await sendUntilDefinite(steady.url, path, key)
        const again = await send(steady.url, path, key)
        expect(again?.replayed, key).toBe(true)
        await expectOneEffect(ledger, key, [first, retry, again])
      }
    }
  },
  120_000,
)
