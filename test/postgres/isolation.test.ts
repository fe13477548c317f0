/** Transactions of our own under the stricter levels: the claim is written first. */
import pg from 'pg'
import { retrysafe } from 'retrysafe'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  expire,
  freshKey,
  openBench,
  until,
  wish,
} from './harness.js'

describe.each(['repeatable read', 'serializable'] as const)('isolation: %s', (isolation) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench({ isolation }, { max: 12 })
  })
  afterAll(async () => {
    expect(bench.pool.totalCount).toBe(bench.pool.idleCount)
    await bench.close()
  })

  test('of many attempts at once on one key exactly one takes effect, and the work runs once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = freshKey()
      const answers = await Promise.all(Array.from({ length: 16 }, () => attempt(bench.store, key)))
      expect(answers.filter((answer) => answer === 'committed')).toHaveLength(1)
      expect(answers.filter((answer) => !['committed', 'held', 'replayed'].includes(answer))).toEqual([])
      expect(await bench.effects(key)).toBe(1)
    }
  })

  test('the work runs at the level that was asked for', async () => {
    const open = await bench.store.transactions.begin(beginRequest(freshKey()))
    const { rows } = await open.tx.query('show transaction_isolation')
    expect(rows[0].transaction_isolation).toBe(isolation)
    await open.rollback()
  })

  test('a dead record is taken over at the claim, and steps aside again on rollback', async () => {
    const key = freshKey()
    await bench.store.claim(claimRequest(key))
    await expire(bench, key)
    const first = await bench.store.transactions.begin(beginRequest(key))
    expect(first).toMatchObject({ granted: true, seen: { state: 'running', live: false } })
    await first.rollback()
    expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toMatchObject({
      live: false,
      attempts: 1,
    })
    const second = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(second, key)
    expect(await second.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toMatchObject({
      state: 'done',
      generation: second.generation,
      attempts: 2,
    })
  })

  test('undoWork keeps the outcome and none of the writes', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(0)
    expect(await attempt(bench.store, key)).toBe('replayed')
  })
})

describe('a session default of SERIALIZABLE fails a lease-mode statement', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench({}, { options: '-c default_transaction_isolation=serializable' })
    // Counts tries outside any transaction, and fails as many of them as it is told.
    await bench.sql(`create sequence tries; create table failing (tries bigint);
      create function fail_some() returns trigger language plpgsql as $$ begin
        if nextval('public.tries') <= (select tries from public.failing) then
          raise exception using errcode = 'serialization_failure', message = 'could not serialize access';
        end if;
        return new;
      end $$;
      create trigger fail_some before update on retrysafe.intent for each row execute function fail_some()`)
  })
  afterAll(() => bench.close())

  async function failing(tries: number): Promise<void> {
    await bench.sql('delete from failing')
    await bench.sql('insert into failing values ($1)', [tries])
    await bench.sql("select setval('tries', 1, false)")
  }

  async function tries(): Promise<number> {
    const { rows } = await bench.sql('select last_value::int as n, is_called from tries')
    return rows[0].is_called ? rows[0].n : 0
  }

  const completion = { outcome: wish.outcome, retainMs: 60_000 }

  test('a row that a rival changed in between: the completion waits, fails, and is sent again', async () => {
    await failing(0)
    const claim = claimRequest(freshKey())
    await bench.store.claim(claim)
    const rival = new pg.Client({ connectionString: bench.database.connectionString })
    await rival.connect()
    await rival.query('begin')
    await rival.query('update retrysafe.intent set attempts = attempts where key = $1', [claim.identity.key])
    const completed = bench.store.complete({ ...claim, ...completion })
    await until(async () => {
      const { rows } = await rival.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      )
      return rows.length > 0
    })
    await rival.query('commit')
    await rival.end()
    expect(await completed).toBe(true)
    // The rival's update, and ours once it got through: its first try never came to the trigger.
    expect(await tries()).toBe(2)
  })

  test('it is sent again up to five times', async () => {
    await failing(5)
    const claim = claimRequest(freshKey())
    await bench.store.claim(claim)
    expect(await bench.store.complete({ ...claim, ...completion })).toBe(true)
    expect(await tries()).toBe(6)
  })

  test('and no more often: then its owner is told', async () => {
    await failing(1_000_000)
    const claim = claimRequest(freshKey())
    await bench.store.claim(claim)
    await expect(bench.store.complete({ ...claim, ...completion })).rejects.toMatchObject({ code: '40001' })
    expect(await tries()).toBe(6)
  })

  test('a completion that goes on failing is a retryable error; the claim is intact and the work does not run again', async () => {
    await failing(1_000_000)
    const key = freshKey()
    const safe = retrysafe({ store: bench.store, leaseMs: 600 })
    let runs = 0
    const call = () =>
      safe.run({ scope: 'tenant', key }, () => {
        runs += 1
        return runs
      })
    await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503, retryable: true })
    expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toMatchObject({
      state: 'running',
      attempts: 1,
    })
    expect(runs).toBe(1)
    await failing(0)
    await until(async () => (await bench.store.find({ key, scope: 'tenant' }, Date.now()))?.live === false)
    expect(await call()).toEqual({ value: 2, replayed: false })
  })
})
