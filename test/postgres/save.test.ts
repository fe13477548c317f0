/** What a save answers, and what it leaves behind. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  freshKey,
  openBench,
  outcome,
  wish,
} from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
  await bench.sql(
    `create table strict_effect (key text, constraint one_each unique (key) deferrable initially deferred)`,
  )
})

afterAll(async () => {
  // Whatever the tests did: every client came back.
  expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
  await bench.close()
})

function find(key: string) {
  return bench.store.find({ key, scope: 'tenant' }, Date.now())
}

test('effect and outcome commit together, byte for byte', async () => {
  const key = freshKey()
  const request = beginRequest(key)
  const open = await bench.store.transactions.begin(request)
  await addEffect(open, key)
  expect(open.used()).toBe(true)
  expect(await find(key)).toBeUndefined()
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  const stored = await find(key)
  expect(stored).toMatchObject({
    state: 'done',
    live: true,
    owner: request.owner,
    generation: open.generation,
  })
  expect(Buffer.from(stored?.outcome ?? [])).toEqual(outcome)
  expect(await bench.effects(key)).toBe(1)
})

test('of many attempts at once on one key exactly one takes effect', async () => {
  const key = freshKey()
  const { store } = bench.another({}, { max: 8 })
  const answers = await Promise.all(Array.from({ length: 24 }, () => attempt(store, key)))
  expect(answers.filter((answer) => answer === 'committed')).toHaveLength(1)
  expect(await bench.effects(key)).toBe(1)
})

test('a rollback frees the key and leaves nothing', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  await open.rollback()
  await open.rollback()
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
  expect(await bench.effects(key)).toBe(0)
  expect(await attempt(bench.store, key)).toBe('committed')
})

test('undoWork keeps the outcome and none of the writes', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
  expect(await bench.effects(key)).toBe(0)
  expect(await find(key)).toMatchObject({ state: 'done' })
})

test('a swallowed error aborts the save, and the outcome can still be saved alone', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  await open.tx.query('select 1 / 0').catch(() => {})
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted', error: { code: '25P02' } })
  expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
  expect(await bench.effects(key)).toBe(0)
  expect(await find(key)).toMatchObject({ state: 'done' })
})

test('a swallowed error and no second save: rollback gives the connection back', async () => {
  const open = await bench.store.transactions.begin(beginRequest(freshKey()))
  await open.tx.query('select 1 / 0').catch(() => {})
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
  await open.rollback()
  expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
})

test('a rival that committed meanwhile refuses the save, and the writes are gone', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  // By hand, because a claim would be told that the identity is held.
  await bench.sql(
    `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
     values ($1, 'tenant', 3, $2, 1, 'f', now() + interval '1 hour', 'theirs')`,
    [key, randomUUID()],
  )
  expect(await open.save(wish)).toEqual({ kind: 'refused' })
  expect(await bench.effects(key)).toBe(0)
})

test("the work's deferred constraint rolls everything back, with its error", async () => {
  const key = freshKey()
  await bench.sql('insert into strict_effect values ($1)', [key])
  const open = await bench.store.transactions.begin(beginRequest(key))
  await open.tx.query('insert into strict_effect values ($1)', [key])
  const answer = await open.save(wish)
  expect(answer).toMatchObject({ kind: 'rolledBack', error: { code: '23505', constraint: 'one_each' } })
  expect(await find(key)).toBeUndefined()
})

test("a violated constraint that is not the record's own key is no rival", async () => {
  const key = freshKey()
  await bench.sql('create table audit (key text primary key)')
  await bench.sql('insert into audit values ($1)', [key])
  await bench.sql(`create function audit() returns trigger language plpgsql as
    $$ begin insert into audit values (new.key); return new; end $$`)
  await bench.sql(
    'create trigger audit before insert on retrysafe.intent for each row execute function audit()',
  )
  const open = await bench.store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  const answer = await open.save(wish)
  await bench.sql('drop trigger audit on retrysafe.intent')
  expect(answer).toMatchObject({ kind: 'rolledBack', error: { code: '23505', constraint: 'audit_pkey' } })
  expect(await bench.effects(key)).toBe(0)
})

test('a conflict of the work is told from its other errors', () => {
  const { isConflict } = bench.store.transactions
  const server = (code: string) => Object.assign(new Error('x'), { code, severity: 'ERROR' })
  expect(['40001', '40P01'].map((code) => isConflict(server(code)))).toEqual([true, true])
  expect(isConflict(server('23505'))).toBe(false)
  expect(isConflict(Object.assign(new Error('x'), { code: '40001' }))).toBe(false)
})

test('the last writes of a lease-mode owner commit with its outcome', async () => {
  const key = freshKey()
  const claim = claimRequest(key)
  await bench.store.claim(claim)
  const open = await bench.store.transactions.open(claim, 20_000)
  await addEffect(open, key)
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  expect(await bench.effects(key)).toBe(1)
  expect(await find(key)).toMatchObject({ state: 'done', owner: claim.owner })
})

test('a late owner cannot overwrite the outcome', async () => {
  const key = freshKey()
  const claim = claimRequest(key)
  await bench.store.claim(claim)
  await bench.store.transactions.renameOwner(claim, randomUUID())
  const more = { ...claim, outcome, retainMs: 1000 }
  expect(await bench.store.complete(more)).toBe(false)
  expect(await bench.store.release(more)).toBe(false)
  expect(await bench.store.renew([{ ...claim, leaseMs: 1000 }])).toEqual([false])
  expect(await find(key)).toMatchObject({ state: 'running' })
})

test('a commit under way makes its owner wait for the new token', async () => {
  const key = freshKey()
  const claim = claimRequest(key)
  await bench.store.claim(claim)
  const client = await bench.pool.connect()
  await client.query('begin')
  await client.query('update retrysafe.intent set state = 3, outcome = $2 where key = $1', [key, outcome])
  const renamed = randomUUID()
  expect(await bench.store.transactions.renameOwner(claim, renamed)).toBe('locked')
  await client.query('rollback')
  client.release()
  expect(await bench.store.transactions.renameOwner(claim, renamed)).toBe('renamed')
  expect(await bench.store.transactions.renameOwner(claim, renamed)).toBe('lost')
  expect(await find(key)).toMatchObject({ state: 'running', owner: renamed })
})

test('a read-back is undecided while the lock is held, and then shows the record', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  const identity = { key, scope: 'tenant' }
  expect(await bench.store.transactions.readBack(identity, Date.now())).toEqual({ undecided: true })
  await open.save(wish)
  const read = await bench.store.transactions.readBack(identity, Date.now())
  expect(read).toMatchObject({ undecided: false, seen: { state: 'done' } })
})
