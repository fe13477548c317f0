/** Migrations, options, sweeping, and what an operator sees and decides. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  expire,
  freshKey,
  openBench,
  outcome,
  until,
} from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

const identity = (key: string) => ({ key, scope: 'tenant' })

test.each([
  [{ schema: 'a"; drop table x; --' }],
  [{ schema: '' }],
  [{ schema: 'a.b' }],
  [{ schema: 'x'.repeat(64) }],
  [{ prepare: 'yes' }],
  [{ isolation: 'read uncommitted' }],
])('an option that cannot be right is refused at construction: %j', (options) => {
  expect(() => postgres(bench.pool, options as object)).toThrow(/option is missing or wrong/i)
})

test('what is no pool is refused at construction', () => {
  for (const wrong of [undefined, null, {}, 'postgres://', new pg.Client()]) {
    expect(() => postgres(wrong as unknown as pg.Pool)).toThrow(/takes a Pool/)
  }
})

test('any number of processes may migrate at once', async () => {
  const schema = 'Several'
  const stores = Array.from({ length: 6 }, () => bench.another({ schema }, { max: 1 }))
  const ran = await Promise.all(stores.map(({ store }) => store.migrate()))
  expect(ran.flat()).toEqual(['0001_intent'])
  expect(await stores[0]?.store.migrate()).toEqual([])
  expect(await stores[0]?.store.claim(claimRequest(freshKey()))).toMatchObject({ claimed: true })
})

test('a schema that an administrator has made needs no right to make one', async () => {
  const role = `plain_${randomUUID().slice(0, 8)}`
  await bench.sql(`create role ${role} login password 'x'`)
  await bench.sql(`create schema ${role} authorization ${role}`)
  const url = new URL(bench.database.connectionString)
  url.username = role
  url.password = 'x'
  const { store } = bench.another({ schema: role }, { connectionString: url.href })
  expect(await store.migrate()).toEqual(['0001_intent'])
})

test('the SQL to paste makes the same tables, and migrate() knows that it was pasted', async () => {
  const { store } = bench.another({ schema: 'pasted' })
  await bench.sql(store.sql())
  expect(await store.migrate()).toEqual([])
  expect(await store.claim(claimRequest(freshKey()))).toMatchObject({ claimed: true })
})

test('missing tables are told with what to do', async () => {
  const { store, pool } = bench.another({ schema: 'absent' })
  const told = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('store.migrate()') }
  await expect(store.claim(claimRequest(freshKey()))).rejects.toMatchObject(told)
  await expect(store.transactions.begin(beginRequest(freshKey()))).rejects.toMatchObject(told)
  await expect(store.find(identity('x'), Date.now())).rejects.toMatchObject(told)
  expect(pool.totalCount).toBe(pool.idleCount)
})

test('a record that cannot be read is an error, never absent', async () => {
  const key = freshKey()
  await bench.store.claim(claimRequest(key))
  const corrupt = { code: 'RECORD_CORRUPT' }
  for (const damage of [
    `state = 9`,
    `state = 1, fingerprint = ''`,
    `state = 3, fingerprint = 'f', outcome = null`,
  ]) {
    await bench.sql(`update retrysafe.intent set ${damage} where key = $1`, [key])
    await expect(bench.store.find(identity(key), Date.now())).rejects.toMatchObject(corrupt)
    await expect(bench.store.claim(claimRequest(key))).rejects.toMatchObject(corrupt)
    await expect(bench.store.transactions.begin(beginRequest(key))).rejects.toMatchObject(corrupt)
    await expect(bench.store.transactions.readBack(identity(key), Date.now())).rejects.toMatchObject(corrupt)
  }
  expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
})

test('keys are equal by bytes, whatever the collation', async () => {
  const keys = ['Ab', 'aB', 'ab ', 'ab', '\u00e9', 'e', 'e\u0301', `"\\{},'`]
  const claims = await Promise.all(keys.map((key) => bench.store.claim(claimRequest(key))))
  expect(claims.map(({ claimed }) => claimed)).toEqual(keys.map(() => true))
})

test('the sweeper takes what is past retention, and nothing that is needed', async () => {
  const { store } = bench.another({ schema: 'swept' })
  await store.migrate()
  const insert = (key: string, state: number, ended: boolean, steps = '') =>
    bench.sql(
      `insert into swept.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome, steps)
       values ($1, 's', $2, $3, 1, 'f', now() + $4::interval, 'o', $5::bytea)`,
      [key, state, randomUUID(), ended ? '-10 minutes' : '10 minutes', steps],
    )
  await insert('done', 3, true)
  await insert('released', 2, true)
  for (const [key, state] of [
    ['running', 1],
    ['unknown', 4],
    ['dead', 5],
  ] as const)
    await insert(key, state, true)
  await insert('released with steps', 2, true, 'charge')
  await insert('live', 3, false)
  expect(await store.sweeping.sweep({ limit: 1, callerNowMs: Date.now() })).toBe(1)
  expect(await store.sweeping.sweep({ limit: 10, callerNowMs: Date.now() })).toBe(1)
  expect(await store.sweeping.sweep({ limit: 10, callerNowMs: Date.now() })).toBe(0)
  const { rows } = await bench.sql('select key from swept.intent order by key')
  expect(rows.map(({ key }) => key)).toEqual(['dead', 'live', 'released with steps', 'running', 'unknown'])
})

test('many sweepers clear a large table in batches, by its index, while claims go on', async () => {
  const { store } = bench.another({ schema: 'large' }, { max: 8 })
  await store.migrate()
  const live = claimRequest('live')
  await store.claim(live)
  await bench.sql(`insert into large.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
    select 'k' || g, 'tenant', 3, gen_random_uuid(), g, 'f', now() - interval '10 minutes', 'o'
    from generate_series(1, 20000) g`)
  await bench.sql('analyze large.intent')
  let claims = 0
  let swept = 0
  let sweepers = 4
  const sweep = async () => {
    for (let batch = -1; batch !== 0; swept += batch) {
      batch = await store.sweeping.sweep({ limit: 500, callerNowMs: Date.now() })
      expect(batch).toBeLessThanOrEqual(500)
    }
    sweepers -= 1
  }
  const claim = async () => {
    while (sweepers > 0) {
      expect(await store.claim(claimRequest(freshKey()))).toMatchObject({ claimed: true })
      claims += 1
    }
  }
  await Promise.all([sweep(), sweep(), sweep(), sweep(), claim(), claim()])
  expect(swept).toBe(20_000)
  expect(claims).toBeGreaterThan(0)
  expect(await store.find(live.identity, Date.now())).toMatchObject({ state: 'running', live: true })
  await until(async () => {
    const { rows } = await bench.sql(
      `select idx_scan from pg_stat_user_indexes where schemaname = 'large' and indexrelname = 'intent_sweep'`,
    )
    return Number(rows[0]?.idx_scan) > 0
  })
})

test("a store's clock that ran ahead does not free done keys", async () => {
  const key = freshKey()
  expect(await attempt(bench.store, key)).toBe('committed')
  await expire(bench, key)
  // To a caller an hour behind, the record ended 10 minutes ago only by the store's clock.
  const callerNowMs = Date.now() - 3_600_000
  expect(await bench.store.find(identity(key), callerNowMs)).toMatchObject({ live: true })
  expect(await attempt(bench.store, key, { callerNowMs })).toBe('replayed')
  expect(await bench.store.sweeping.sweep({ limit: 1000, callerNowMs })).toBe(0)
  const seen = await bench.store.find(identity(key), callerNowMs)
  if (seen === undefined) throw new Error('the record is gone')
  expect(await bench.store.takeOver({ ...claimRequest(key), callerNowMs, seen })).toBeUndefined()
  expect(await bench.store.takeOver({ ...claimRequest(key), seen })).toMatchObject({ attempts: 1 })
})

test('an operator counts, lists and decides, by the generation that was seen', async () => {
  const { store } = bench.another({ schema: 'operated' })
  await store.migrate()
  const claim = claimRequest('k')
  const granted = await store.claim(claim)
  if (!granted.claimed) throw new Error('not claimed')
  const { generation } = granted
  const verdict = { identity: claim.identity, generation, retainMs: 60_000 }
  expect(await store.operating.resolveReleased(verdict)).toBe(false)
  expect(await store.abandon({ ...verdict, owner: claim.owner })).toBe(false)
  await bench.sql(`update operated.intent set ends_at = now() - interval '1 s'`)
  expect(await store.abandon({ ...verdict, owner: randomUUID() })).toBe(false)
  expect(await store.abandon({ ...verdict, owner: claim.owner })).toBe(true)
  expect(await store.operating.count()).toEqual({ running: 0, released: 0, done: 0, unknown: 1, dead: 0 })
  expect(await store.operating.list({ states: ['unknown', 'dead'], limit: 5 })).toMatchObject([
    { identity: claim.identity, state: 'unknown', generation, attempts: 1, live: true },
  ])
  expect(await store.operating.list({ states: ['done'], limit: 5 })).toEqual([])
  expect(await store.operating.resolveDone({ ...verdict, generation: generation - 1, outcome })).toBe(false)
  expect(await store.operating.resolveDone({ ...verdict, outcome })).toBe(true)
  expect(await store.operating.resolveReleased(verdict)).toBe(false)
  expect(await store.find(claim.identity, Date.now())).toMatchObject({ state: 'done', outcome })
})
