/** The database itself stops dead in the middle of requests: nothing half-written, nothing twice, nothing acknowledged lost. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryPostgres } from '../../servers/temporary.js'
import { until } from '../setup/until.js'
import {
  expectOneEffect,
  type Ledger,
  openLedger,
  type Service,
  send,
  sendUntilDefinite,
  startService,
  type Told,
} from './service.js'

let server: Awaited<ReturnType<typeof temporaryPostgres>>
let ledger: Ledger
let service: Service

beforeAll(async () => {
  server = await temporaryPostgres()
  ledger = await openLedger(server.connectionString)
  // A broken idle connection is the pool's to replace.
  ledger.pool.on('error', () => undefined)
  service = await startService(server.connectionString)
})

afterAll(async () => {
  await service?.kill()
  await ledger?.pool.end()
  await server?.stop()
})

test.each(['/transaction', '/lease'])(
  'a server stopped with -m immediate during POST %s loses no acknowledged effect',
  async (path) => {
    for (let round = 0; round < 3; round += 1) {
      const keys = Array.from({ length: 12 }, (_, index) => `${path}-${round}-${index}`)
      const answers = new Map<string, (Told | undefined)[]>(keys.map((key) => [key, []]))
      // The work lasts for a time of its own each, so that the stop meets every phase of a request.
      let answered = 0
      const flying = keys.map(async (key, index) => {
        answers.get(key)?.push(await send(service.url, path, key, { workMs: index * 15 }))
        answered += 1
      })
      // Some are over, some are at work, and some have not begun: later in each round.
      await until(() => answered > round * 3, 'some requests have been answered')
      await server.restart('immediate')
      await Promise.all(flying)
      for (const [index, key] of keys.entries()) {
        answers.get(key)?.push(await sendUntilDefinite(service.url, path, key, { workMs: index * 15 }))
      }
      for (const key of keys) await expectOneEffect(ledger, key, answers.get(key) ?? [])
    }
    expect(service.process.exitCode).toBeNull()
  },
  120_000,
)
