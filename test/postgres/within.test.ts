/** A claim inside the caller's own transaction, at every isolation level. */
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addEffect, attempt, type Bench, beginRequest, freshKey, openBench, wish } from './harness.js'

let bench: Bench
let client: pg.PoolClient

beforeAll(async () => {
  bench = await openBench()
  await bench.sql('create table mine (key text primary key)')
})

afterAll(() => bench.close())

describe.each(['read committed', 'repeatable read', 'serializable'])('within, under %s', (level) => {
  beforeEach(async () => {
    client = await bench.pool.connect()
    await client.query(`begin isolation level ${level}`)
    // Takes the snapshot, where the level has one.
    await client.query('select 1')
  })

  afterEach(async () => {
    await client.query('rollback')
    client.release()
  })

  const within = (key: string) => bench.store.transactions.within(client, beginRequest(key))

  test("the outcome is true when the caller's transaction commits", async () => {
    const key = freshKey()
    const open = await within(key)
    await addEffect(open, key)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(0)
    await client.query('commit')
    expect(await bench.effects(key)).toBe(1)
    expect(await attempt(bench.store, key)).toBe('replayed')
  })

  test("the caller's rollback takes the record with it", async () => {
    const key = freshKey()
    const open = await within(key)
    await open.save(wish)
    await client.query('rollback')
    expect(await attempt(bench.store, key)).toBe('committed')
  })

  test('a rollback of the attempt leaves the transaction usable, and the writes before it', async () => {
    const [key, before] = [freshKey(), freshKey()]
    await client.query('insert into effect values ($1)', [before])
    const open = await within(key)
    await addEffect(open, key)
    await expect(open.tx.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
    await open.rollback()
    await client.query('commit')
    expect([await bench.effects(key), await bench.effects(before)]).toEqual([0, 1])
  })

  test('a duplicate is shown or held, and leaves the transaction usable', async () => {
    const key = freshKey()
    expect(await attempt(bench.store, key)).toBe('committed')
    const open = await within(key)
    if (level === 'read committed') expect(open.seen).toMatchObject({ state: 'done', live: true })
    else expect([open.seen, open.granted]).toEqual([undefined, false])
    await open.rollback()
    await client.query('insert into effect values ($1)', [`${key}-after`])
    await client.query('commit')
    expect(await bench.effects(`${key}-after`)).toBe(1)
  })

  test("the work's own constraint errors pass through untouched", async () => {
    const key = freshKey()
    await bench.sql('insert into mine values ($1)', [key])
    const open = await within(key)
    const insert = open.tx.query('insert into mine values ($1)', [key])
    await expect(insert).rejects.toMatchObject({ code: '23505', constraint: 'mine_pkey' })
    expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
    await open.rollback()
    await client.query('commit')
  })

  test('no setting of the transaction is changed', async () => {
    const settings = `select name, setting from pg_settings
      where name in ('idle_in_transaction_session_timeout', 'transaction_isolation', 'lock_timeout', 'statement_timeout')
      order by name`
    const before = await client.query(settings)
    const open = await within(freshKey())
    await open.save(wish)
    expect((await client.query(settings)).rows).toEqual(before.rows)
  })

  test('undoWork saves the outcome alone, after a swallowed error too', async () => {
    const key = freshKey()
    const open = await within(key)
    await addEffect(open, key)
    await open.tx.query('select 1 / 0').catch(() => {})
    expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
    await client.query('commit')
    expect(await bench.effects(key)).toBe(0)
    expect(await attempt(bench.store, key)).toBe('replayed')
  })

  test("a claim undone by the work's ROLLBACK TO cannot be saved", async () => {
    await client.query('savepoint mine')
    const open = await within(freshKey())
    await client.query('rollback to savepoint mine')
    expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
    await open.rollback()
  })
})

test('an aborted transaction of the caller is told with its own error', async () => {
  const aborted = await bench.pool.connect()
  await aborted.query('begin')
  await aborted.query('select 1 / 0').catch(() => {})
  const open = bench.store.transactions.within(aborted, beginRequest(freshKey()))
  await expect(open).rejects.toMatchObject({ code: '25P02' })
  await aborted.query('rollback')
  aborted.release()
})

test('an attempt inside an attempt dies with the outer one', async () => {
  const [outerKey, innerKey] = [freshKey(), freshKey()]
  const outer = await bench.store.transactions.begin(beginRequest(outerKey))
  const inner = await bench.store.transactions.within(outer.tx, beginRequest(innerKey))
  await addEffect(inner, innerKey)
  expect(await inner.save(wish)).toEqual({ kind: 'committed' })
  const late = await bench.store.transactions.within(outer.tx, beginRequest(freshKey()))
  await outer.settle()
  await expect(late.tx.query('select 1')).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
  await late.rollback()
  expect(await outer.save(wish)).toEqual({ kind: 'committed' })
  expect(await bench.effects(innerKey)).toBe(1)
  const after = bench.store.transactions.within(outer.tx, beginRequest(freshKey()))
  await expect(after).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
})

test('no listener stays on the client of the caller', async () => {
  const caller = await bench.pool.connect()
  const before = caller.listenerCount('error')
  await caller.query('begin')
  for (const end of ['save', 'rollback'] as const) {
    const open = await bench.store.transactions.within(caller, beginRequest(freshKey()))
    await open[end](wish as never)
  }
  await caller.query('rollback')
  await bench.store.transactions.within(caller, beginRequest(freshKey())).catch(() => {})
  expect(caller.listenerCount('error')).toBe(before)
  caller.release()
})

test('what is no client with a transaction is refused', async () => {
  const open = bench.store.transactions.within(bench.pool, beginRequest(freshKey()))
  await expect(open).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})
