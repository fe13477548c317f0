/** One test for each row of the table of what was seen to go wrong without its guard. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockNumber } from '../../dist/stores/postgres/identity.js'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  expire,
  freshKey,
  openBench,
  wish,
} from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

/** A client with an open transaction of its own. */
async function rivalClient(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: bench.database.connectionString })
  await client.connect()
  await client.query('begin')
  return client
}

test("a zombie's last writes roll back with its refused save", async () => {
  const key = freshKey()
  const owner = randomUUID()
  await bench.store.claim(claimRequest(key, { owner, leaseMs: 1 }))
  const open = await bench.store.transactions.open({ identity: { key, scope: 'tenant' }, owner }, 20_000)
  await addEffect(open, key, 'zombie')
  await expire(bench, key)
  const seen = await bench.store.find({ key, scope: 'tenant' }, Date.now())
  if (seen === undefined) throw new Error('the record is gone')
  const next = claimRequest(key)
  expect(await bench.store.takeOver({ ...next, seen })).toBeDefined()
  expect(await open.save(wish)).toEqual({ kind: 'refused' })
  expect(await bench.effects(key)).toBe(0)
  expect(await bench.store.find(next.identity, Date.now())).toMatchObject({
    state: 'running',
    owner: next.owner,
  })
})

/** Text whose end of transaction the guard cannot see: it assumes standard strings. */
const hiddenFrom = (command: string) => `select '\\''; ${command}; --'`

test("a save after the work's own ROLLBACK stores nothing", async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await open.tx.query('set local standard_conforming_strings = off')
  await addEffect(open, key)
  await open.tx.query(hiddenFrom('rollback'))
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
  await open.rollback()
  expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toBeUndefined()
})

test("a save after the work's own COMMIT and BEGIN stores nothing", async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await open.tx.query('set standard_conforming_strings = off')
  await open.tx.query(hiddenFrom('commit; begin'))
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
  await open.rollback()
  expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toBeUndefined()
})

test("a save of the last writes after the work's own COMMIT and BEGIN stores nothing", async () => {
  const key = freshKey()
  const owner = randomUUID()
  await bench.store.claim(claimRequest(key, { owner }))
  const open = await bench.store.transactions.open({ identity: { key, scope: 'tenant' }, owner }, 20_000)
  await open.tx.query('set standard_conforming_strings = off')
  await open.tx.query(hiddenFrom('commit; begin'))
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
  expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toMatchObject({ state: 'running' })
})

test('the other branch of the work writes nothing after the rollback', async () => {
  const key = freshKey()
  const { store } = bench.another({}, { max: 1 })
  const open = await store.transactions.begin(beginRequest(key))
  const branch = open.tx.query('select pg_sleep(0.1)').then(() => addEffect(open, key))
  const refused = expect(branch).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
  await open.rollback()
  await refused
  expect(await attempt(store, freshKey())).toBe('committed')
  expect(await bench.effects(key)).toBe(0)
})

test('rollback waits for the statement in flight', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  let answered = false
  const inFlight = open.tx.query('select pg_sleep(0.1)').finally(() => {
    answered = true
  })
  await open.rollback()
  expect(answered).toBe(true)
  await inFlight
})

test('a sweeper neither waits for nor removes a record that is being renewed', async () => {
  const key = freshKey()
  expect(await attempt(bench.store, key)).toBe('committed')
  await expire(bench, key)
  const rival = await rivalClient()
  await rival.query(`update retrysafe.intent set ends_at = now() + interval '1 hour' where key = $1`, [key])
  expect(await bench.store.sweeping.sweep({ limit: 100, callerNowMs: Date.now() })).toBe(0)
  await rival.query('commit')
  await rival.end()
  expect(await bench.store.sweeping.sweep({ limit: 100, callerNowMs: Date.now() })).toBe(0)
  expect(await attempt(bench.store, key)).toBe('replayed')
})

test('retention counts from the save, however long the work took', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await open.tx.query('select pg_sleep(0.05)')
  const { rows } = await open.tx.query('select clock_timestamp() as before_save')
  expect(await open.save({ ...wish, retainMs: 1000 })).toEqual({ kind: 'committed' })
  const kept = await bench.sql(
    `select ends_at >= $2::timestamptz + interval '1 s' as whole from retrysafe.intent where key = $1`,
    [key, rows[0].before_save],
  )
  expect(kept.rows[0].whole).toBe(true)
})

test('a finished record is seen while its lock is held', async () => {
  const key = freshKey()
  expect(await attempt(bench.store, key)).toBe('committed')
  const rival = await rivalClient()
  await rival.query('select pg_advisory_xact_lock($1::bigint)', [
    lockNumber('retrysafe', { key, scope: 'tenant' }),
  ])
  const open = await bench.store.transactions.begin(beginRequest(key))
  expect(open.granted).toBe(false)
  expect(open.seen).toMatchObject({ state: 'done', live: true })
  await open.rollback()
  await rival.end()
})

test('an expired record is replaced by the save, with no sweeper about', async () => {
  const key = freshKey()
  expect(await attempt(bench.store, key)).toBe('committed')
  await expire(bench, key)
  const open = await bench.store.transactions.begin(beginRequest(key))
  expect(open.seen).toMatchObject({ state: 'done', live: false })
  await addEffect(open, key)
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  const stored = await bench.store.find({ key, scope: 'tenant' }, Date.now())
  expect(stored).toMatchObject({ state: 'done', live: true, generation: open.generation })
  expect(open.generation).toBeGreaterThan(open.seen?.generation ?? 0)
})

test('a dead record that changed since the look-up is not replaced', async () => {
  const key = freshKey()
  await bench.store.claim(claimRequest(key))
  await expire(bench, key)
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  // Its owner comes back and renews: the lease lives again, under the same owner and generation.
  await bench.sql(`update retrysafe.intent set ends_at = now() + interval '1 hour' where key = $1`, [key])
  expect(await open.save(wish)).toEqual({ kind: 'refused' })
  expect(await bench.effects(key)).toBe(0)
})

test('the isolation level is said in words, whatever the session defaults to', async () => {
  const { store } = bench.another(
    {},
    { options: '-c default_transaction_isolation=serializable -c default_transaction_read_only=on' },
  )
  const open = await store.transactions.begin(beginRequest(freshKey()))
  const { rows } = await open.tx.query('show transaction_isolation')
  expect(rows[0].transaction_isolation).toBe('read committed')
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
})

test('a takeover does not wait for a locked row', async () => {
  const key = freshKey()
  await bench.store.claim(claimRequest(key))
  await expire(bench, key)
  const seen = await bench.store.find({ key, scope: 'tenant' }, Date.now())
  if (seen === undefined) throw new Error('the record is gone')
  const stalled = await rivalClient()
  await stalled.query('select from retrysafe.intent where key = $1 for update', [key])
  expect(await bench.store.takeOver({ ...claimRequest(key), seen })).toBeUndefined()
  await stalled.query('rollback')
  await stalled.end()
  expect(await bench.store.takeOver({ ...claimRequest(key), seen })).toBeDefined()
})

test('a claim does not wait for the uncommitted record of a transaction', async () => {
  const key = freshKey()
  const { store } = bench.another({ isolation: 'repeatable read' })
  const open = await store.transactions.begin(beginRequest(key))
  expect(open.granted).toBe(true)
  const answer = await bench.store.claim(claimRequest(key))
  // Held, and nothing more is known: the record is not to be seen before it is committed.
  expect(answer).toEqual({ claimed: false, seen: undefined })
  await open.rollback()
  expect(await bench.store.claim(claimRequest(key))).toMatchObject({ claimed: true })
})
