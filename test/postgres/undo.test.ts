/**
 * A failure that is kept is saved alone: the work's writes are undone, and no rival gets in between, with and without a savepoint
 * (rule 11). No lock of the session outlives the attempt.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addEffect, type Bench, beginRequest, freshKey, openBench, until, wish } from './harness.js'

let bench: Bench
let elsewhere: Bench['store']

beforeAll(async () => {
  bench = await openBench()
  elsewhere = bench.another({}, { max: 3 }).store
})

afterAll(() => bench.close())

async function advisoryLocks(): Promise<number> {
  const { rows } = await bench.sql(
    `select count(*)::int as n from pg_locks where locktype = 'advisory'
       and database = (select oid from pg_database where datname = current_database())`,
  )
  return rows[0].n
}

/** Rivals that ask for the claim without pause; how often one got it while no record stood. */
function rivals(key: string) {
  let stopped = false
  let granted = 0
  let looks = 0
  async function one(): Promise<void> {
    while (!stopped) {
      const open = await elsewhere.transactions.begin(beginRequest(key))
      looks += 1
      if (open.granted && open.seen === undefined) granted += 1
      await open.rollback()
    }
  }
  const all = Promise.all([one(), one(), one()])
  return {
    looks: () => looks,
    stop: async () => {
      stopped = true
      await all
      return granted
    },
  }
}

const ways = [
  { name: 'with a savepoint', mayUndoWork: true, pin: false, spoil: false },
  { name: 'with a savepoint, after a swallowed error', mayUndoWork: true, pin: true, spoil: true },
  { name: 'beginning anew', mayUndoWork: false, pin: false, spoil: false },
  { name: 'beginning anew, past the point of no return', mayUndoWork: false, pin: true, spoil: false },
  {
    name: 'beginning anew, past the point of no return, after a swallowed error',
    mayUndoWork: false,
    pin: true,
    spoil: true,
  },
]

test.each(ways)('no rival gets in between: $name', async ({ mayUndoWork, pin, spoil }) => {
  for (let round = 0; round < 20; round += 1) {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key, { mayUndoWork }))
    await addEffect(open, key)
    if (pin) open.pin()
    if (spoil) await open.tx.query('select 1 / 0').catch(() => {})
    const crowd = rivals(key)
    await until(() => crowd.looks() > 5)
    expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
    expect(await crowd.stop()).toBe(0)
    expect(await bench.effects(key)).toBe(0)
  }
  expect(await advisoryLocks()).toBe(0)
  expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
})

test.each([true, false])(
  'a pinned attempt that succeeds after all commits its writes and holds nothing (savepoint: %s)',
  async (mayUndoWork) => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key, { mayUndoWork }))
    open.pin()
    open.pin()
    await addEffect(open, key)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(1)
    expect(await advisoryLocks()).toBe(0)
  },
)

test('a pinned attempt that is rolled back, or whose save fails, holds nothing', async () => {
  const rolled = await bench.store.transactions.begin(beginRequest(freshKey()))
  rolled.pin()
  await addEffect(rolled, 'x')
  await rolled.rollback()
  expect(await advisoryLocks()).toBe(0)
  await bench.sql('create table deferred (n int unique deferrable initially deferred)')
  const failing = await bench.store.transactions.begin(beginRequest(freshKey()))
  failing.pin()
  await failing.tx.query('insert into deferred values (1), (1)')
  expect(await failing.save(wish)).toMatchObject({ kind: 'rolledBack', error: { code: '23505' } })
  expect(await advisoryLocks()).toBe(0)
  expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
})

test('an attempt abandoned past the point of no return gives its locks back with its connection', async () => {
  const open = await bench.store.transactions.begin(beginRequest(freshKey()))
  open.pin()
  await open.rollback('abandon')
  await until(async () => (await advisoryLocks()) === 0)
})
