/**
 * Both modes mixed on hot keys while backends are killed, owners pause past their lease, work rolls back by itself, and a sweeper
 * runs. The table of effects has no unique constraint, so that a duplicate shows.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { PostgresStore } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OpenTransaction } from '../../dist/store.js'
import { type Bench, beginRequest, claimRequest, openBench, type Tx, wish } from './harness.js'

const runMs = Number(process.env.RETRYSAFE_STRESS_MS ?? 6000)
const workers = 24
const keysAtOnce = 12
const shortMs = 60

let bench: Bench
const seen = {
  committed: 0,
  refused: 0,
  aborted: 0,
  rolledBack: 0,
  ambiguous: 0,
  takenOver: 0,
  replayed: 0,
  killed: 0,
  swept: 0,
  errors: 0,
}
/** What was answered for a key: every definite answer must be the same. */
const answers = new Map<string, Set<string>>()

beforeAll(async () => {
  bench = await openBench({ prepare: true }, { max: 8 })
  await bench.sql('create table stressed (key text, note text, at timestamptz default clock_timestamp())')
})

afterAll(() => bench.close())

const pause = (mostMs: number) => new Promise((resume) => setTimeout(resume, Math.random() * mostMs))

function answered(key: string, note: string): void {
  answers.set(key, (answers.get(key) ?? new Set()).add(note))
}

async function write(open: OpenTransaction<Tx>, key: string, note: string): Promise<void> {
  await open.tx.query('insert into stressed (key, note) values ($1, $2)', [key, note])
}

/** Saves, and finds out what became of it. */
async function conclude(
  store: PostgresStore<Tx>,
  open: OpenTransaction<Tx>,
  key: string,
  note: string,
  retainMs: number,
) {
  const answer = await open.save({ ...wish, outcome: Buffer.from(note), retainMs })
  seen[answer.kind] += 1
  await open.rollback()
  if (answer.kind === 'committed') answered(key, note)
  if (answer.kind !== 'ambiguous') return
  for (;;) {
    const read = await store.transactions
      .readBack({ key, scope: 'tenant' }, Date.now())
      .catch(() => undefined)
    if (read?.seen?.state === 'done') answered(key, String(read.seen.outcome))
    if (read !== undefined && !read.undecided) return
  }
}

async function inTransaction(
  store: PostgresStore<Tx>,
  key: string,
  note: string,
  retainMs: number,
): Promise<void> {
  const open = await store.transactions.begin(beginRequest(key))
  const { granted, seen: record } = open
  if (record?.state === 'done' && record.live) {
    seen.replayed += 1
    if (retainMs > shortMs) answered(key, String(record.outcome))
  }
  if (!granted || record?.live) return open.rollback()
  try {
    await write(open, key, note)
    const luck = Math.random()
    if (luck < 0.05) {
      await open.tx.query('set local standard_conforming_strings = off')
      await open.tx.query(`select '\\''; rollback; --'`)
    }
    if (luck > 0.95) return await open.rollback()
    await pause(10)
  } catch {
    return open.rollback()
  }
  await conclude(store, open, key, note, retainMs)
}

async function underLease(store: PostgresStore<Tx>, key: string, note: string): Promise<void> {
  const claim = claimRequest(key, { leaseMs: 30 })
  const answer = await store.claim(claim)
  if (!answer.claimed) {
    const { seen: record } = answer
    if (record === undefined) return
    if (record.state === 'done') answered(key, String(record.outcome))
    if (record.state === 'done' || (record.state === 'running' && record.live)) return
    if ((await store.takeOver({ ...claim, seen: record })) === undefined) return
    seen.takenOver += 1
  }
  // Half of the owners come back too late.
  await pause(60)
  if (Math.random() < 0.2) return void (await store.release({ ...claim, retainMs: 60_000 }))
  const open = await store.transactions.open(claim, 20_000)
  try {
    await write(open, key, note)
  } catch {
    return open.rollback()
  }
  await conclude(store, open, key, note, 600_000)
}

async function work(store: PostgresStore<Tx>, until: number): Promise<void> {
  while (performance.now() < until) {
    const era = Math.floor((until - performance.now()) / 500)
    const key = `${era}-${Math.floor(Math.random() * keysAtOnce)}`
    await oneAttempt(store, key).catch(() => {
      seen.errors += 1
    })
  }
}

function oneAttempt(store: PostgresStore<Tx>, key: string): Promise<void> {
  const kind = Math.random()
  if (kind < 0.25) return inTransaction(store, `short-${key}`, randomUUID(), shortMs)
  if (kind < 0.65) return inTransaction(store, key, randomUUID(), 600_000)
  return underLease(store, key, randomUUID())
}

async function repeat(until: number, everyMs: number, act: () => Promise<void>): Promise<void> {
  while (performance.now() < until) {
    await act().catch(() => {})
    await pause(everyMs * 2)
  }
}

test('no key takes effect twice, and no success is without its effect', async () => {
  const until = performance.now() + runMs
  const stores = [bench, bench.another(), bench.another({ isolation: 'repeatable read' })]
  const pools: pg.Pool[] = stores.map(({ pool }) => pool)
  await Promise.all([
    ...Array.from({ length: workers }, (_, index) =>
      work(stores[index % stores.length]?.store ?? bench.store, until),
    ),
    repeat(until, 30, async () => {
      const { rowCount } = await bench.sql(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() order by random() limit 1`)
      seen.killed += rowCount ?? 0
    }),
    repeat(until, 10, async () => {
      seen.swept += await bench.store.sweeping.sweep({ limit: 100, callerNowMs: Date.now() })
    }),
  ])
  const twice = await bench.sql(
    `select key, count(*) from stressed where key not like 'short-%' group by key having count(*) > 1`,
  )
  expect(twice.rows, 'keys that took effect twice').toEqual([])
  const early = await bench.sql(
    `select key from (select key, at - lag(at) over (partition by key order by at) as apart from stressed
       where key like 'short-%') t where apart < $1::int * interval '1 ms'`,
    [shortMs],
  )
  expect(early.rows, 'keys that took effect again inside their retention').toEqual([])
  const effects = new Map(
    (await bench.sql(`select key, note from stressed`)).rows.map(({ key, note }) => [key, note]),
  )
  for (const [key, notes] of answers) {
    if (key.startsWith('short-')) continue
    expect([...notes], 'one answer for each key, and its effect is there').toEqual([effects.get(key)])
  }
  for (const pool of pools) expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0])
  // A run in which the faults did not happen has shown nothing.
  const { committed, refused, takenOver, replayed, killed, swept } = seen
  expect(
    Math.min(committed, refused, takenOver, replayed, killed, swept),
    JSON.stringify(seen),
  ).toBeGreaterThan(0)
  console.log('stress', JSON.stringify(seen))
})
