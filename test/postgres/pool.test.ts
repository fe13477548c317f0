/** What our work leaves of the user's pool: no transaction that idles, no client that is lost, nothing run after a claim that failed. */
import pg from 'pg'
import { retrysafe } from 'retrysafe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, freshKey, openBench, until } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

/** Transactions that idle in sessions under a name, each by its process and its start. A session that is only starting has no state yet. */
async function openIdle(name: string): Promise<string[]> {
  const { rows } = await bench.sql(
    `select pid || ' ' || xact_start as session from pg_stat_activity
       where application_name = $1 and state like 'idle in transaction%'`,
    [name],
  )
  return rows.map(({ session }) => session)
}

test('while lease-mode work runs, no session of ours has a transaction open', async () => {
  const name = `lease-${freshKey()}`
  const { pool, store } = bench.another({}, { application_name: name })
  let renewals = 0
  const counted = {
    ...store,
    renew: (...given: Parameters<typeof store.renew>) => store.renew(...given).finally(() => (renewals += 1)),
  }
  const safe = retrysafe({ store: counted, leaseMs: 1500 })
  let looks = 0
  let before: string[] = []
  await safe.run({ scope: 's', key: freshKey() }, async ({ commit, signal }) => {
    // Through several renewals.
    while (renewals < 2 && !signal.aborted) {
      // Seen twice in one transaction: a renewal may be caught once between its messages, but nothing of ours stays open.
      const now = await openIdle(name)
      expect(now.filter((session) => before.includes(session))).toEqual([])
      before = now
      looks += 1
    }
    await commit(({ query }) => query('insert into effect (key) values ($1)', ['f071']))
    const behind = await openIdle(name)
    const later = await openIdle(name)
    expect(later.filter((session) => behind.includes(session))).toEqual([])
  })
  expect(looks).toBeGreaterThan(0)
  expect(renewals).toBeGreaterThanOrEqual(2)
  expect(pool.totalCount).toBe(pool.idleCount)
})

test.each(['transaction', 'run'] as const)(
  'a claim that takes too long is 503, the work does not run, and the pool is as it was (%s)',
  async (mode) => {
    const { pool, store } = bench.another({}, { max: 2, query_timeout: 200 })
    const safe = retrysafe({ store })
    const intent = { scope: 's', key: freshKey() }
    let runs = 0
    const call = () => safe[mode](intent, () => (runs += 1))
    const locked = new pg.Client({ connectionString: bench.database.connectionString })
    await locked.connect()
    await locked.query('begin; lock table retrysafe.intent in access exclusive mode')
    await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503, retryAfterMs: 1000 })
    expect(runs).toBe(0)
    await locked.query('rollback')
    await locked.end()
    // The client that waits for an answer nobody reads is gone, and another one takes its place.
    await until(() => pool.totalCount === pool.idleCount)
    expect(pool.waitingCount).toBe(0)
    await until(async () => (await call().catch(() => undefined)) !== undefined)
    expect(runs).toBe(1)
  },
)

test('a BEGIN that is refused gives the client back, and the next query is fine', async () => {
  const { pool, store } = bench.another({}, { max: 1 })
  // Somebody gave a client back in the middle of a failed transaction: it refuses every statement, BEGIN too.
  const careless = await pool.connect()
  await careless.query('begin')
  await expect(careless.query('select 1 / 0')).rejects.toThrow()
  careless.release()
  const safe = retrysafe({ store })
  let runs = 0
  const call = () => safe.transaction({ scope: 's', key: 'refused' }, () => (runs += 1))
  await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '25P02' } })
  expect({ runs, total: pool.totalCount, idle: pool.idleCount }).toEqual({ runs: 0, total: 1, idle: 1 })
  expect(await call()).toEqual({ value: 1, replayed: false })
})
