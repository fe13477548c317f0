/** The same answers in every time zone of the server's session and of this process. */
import { afterEach, expect, test } from 'vitest'
import { attempt, type Bench, claimRequest, expire, freshKey, openBench } from './harness.js'

const processZone = process.env.TZ
let bench: Bench | undefined

afterEach(async () => {
  if (processZone === undefined) delete process.env.TZ
  else process.env.TZ = processZone
  await bench?.close()
})

test.each([
  ['UTC', 'UTC'],
  ['Pacific/Tongatapu', 'Pacific/Pago_Pago'],
  ['Pacific/Pago_Pago', 'Pacific/Tongatapu'],
])('ends are judged alike with the server at %s and the process at %s', async (server, here) => {
  process.env.TZ = here
  bench = await openBench({}, { options: `-c TimeZone=${server}` })
  const key = freshKey()
  const claim = claimRequest(key)
  await bench.store.claim(claim)
  const running = await bench.store.find(claim.identity, Date.now())
  expect(running).toMatchObject({ state: 'running', live: true })
  expect(running?.leftMs).toBeLessThanOrEqual(claim.leaseMs)
  // Both clocks are this machine's: a zone taken for an offset would be hours.
  expect(Math.abs((running?.storeNowMs ?? 0) - Date.now())).toBeLessThan(600_000)
  expect(await attempt(bench.store, key)).toBe('held')
  await expire(bench, key)
  expect(await attempt(bench.store, key)).toBe('committed')
  expect(await attempt(bench.store, key)).toBe('replayed')
  await expire(bench, key)
  expect(await bench.store.sweeping.sweep({ limit: 10, callerNowMs: Date.now() })).toBe(1)
})
