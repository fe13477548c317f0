/** Leases are renewed on a connection that the work cannot exhaust. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, claimRequest, expire, freshKey, openBench, outcome, until } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

async function claimed(key = freshKey()) {
  const claim = claimRequest(key)
  expect(await bench.store.claim(claim)).toMatchObject({ claimed: true })
  return claim
}

/** Server processes that have sent a renewal last. */
async function renewers(): Promise<number[]> {
  const { rows } = await bench.sql(
    `select pid from pg_stat_activity where datname = current_database() and query like 'with asked%unnest%'`,
  )
  return rows.map(({ pid }) => pid)
}

test('many leases are renewed in one statement, each answered in its place', async () => {
  const [mine, done, odd] = [await claimed(), await claimed(), await claimed(`"odd\\ {key},'`)]
  await bench.store.complete({ ...done, outcome, retainMs: 60_000 })
  const absent = claimRequest(freshKey())
  const leaseMs = 90_000
  const answers = await bench.store.renew([mine, done, absent, odd].map((claim) => ({ ...claim, leaseMs })))
  expect(answers).toEqual([true, false, false, true])
  const seen = await bench.store.find(mine.identity, Date.now())
  expect(seen?.leftMs).toBeGreaterThan(mine.leaseMs)
})

test('an owner renews after its lease ran out, as long as nobody took over', async () => {
  const claim = await claimed()
  await expire(bench, claim.identity.key)
  expect(await bench.store.renew([{ ...claim, leaseMs: 30_000 }])).toEqual([true])
  expect(await bench.store.find(claim.identity, Date.now())).toMatchObject({ live: true })
})

test('a pool that the work has drained costs no lease', async () => {
  const claim = await claimed()
  const { store, pool } = bench.another({}, { max: 1 })
  const hog = await pool.connect()
  expect(await store.renew([{ ...claim, leaseMs: 30_000 }])).toEqual([true])
  expect(pool.waitingCount).toBe(0)
  hog.release()
  await store.close()
})

test('renewals share one connection, and one that was cut is replaced', async () => {
  const claim = await claimed()
  const { store } = bench.another()
  await bench.store.close()
  const renew = () => store.renew([{ ...claim, leaseMs: 30_000 }])
  await until(async () => (await renewers()).length === 0)
  await Promise.all([renew(), renew()])
  const [first, ...others] = await renewers()
  expect(others).toEqual([])
  await bench.sql('select pg_terminate_backend($1)', [first])
  await until(async () => (await renewers()).length === 0)
  await until(() =>
    renew().then(
      () => true,
      () => false,
    ),
  )
  expect(await renew()).toEqual([true])
  await store.close()
  await until(async () => (await renewers()).length === 0)
})

test('a commit that hangs on its row holds up no other lease of the process', async () => {
  const [stuck, other] = [await claimed(), await claimed()]
  const { pool } = bench.another()
  const client = await pool.connect()
  await client.query('begin')
  await client.query('update retrysafe.intent set attempts = attempts where key = $1', [stuck.identity.key])
  const answers = await bench.store.renew([stuck, other].map((claim) => ({ ...claim, leaseMs: 30_000 })))
  expect(answers).toEqual([undefined, true])
  await client.query('rollback')
  client.release()
})

test('a pool that shows no client of its own renews through itself', async () => {
  const claim = await claimed()
  const { pool } = bench.another()
  const plain = {
    connect: pool.connect.bind(pool),
    query: pool.query.bind(pool),
    on: pool.on.bind(pool),
    totalCount: 0,
  }
  expect(await postgres(plain).renew([{ ...claim, leaseMs: 30_000 }])).toEqual([true])
})

test('a process that has renewed exits by itself', async () => {
  const claim = await claimed()
  const script = `
    import pg from 'pg'
    import { postgres } from 'retrysafe/postgres'
    const pool = new pg.Pool({ connectionString: process.env.URL, allowExitOnIdle: true })
    const [renewed] = await postgres(pool).renew([{ ...JSON.parse(process.env.CLAIM), leaseMs: 30000 }])
    process.exitCode = renewed ? 7 : 8`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, URL: bench.database.connectionString, CLAIM: JSON.stringify(claim) },
    stdio: 'inherit',
  })
  expect(await once(child, 'exit')).toEqual([7, null])
})
