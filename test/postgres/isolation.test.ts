/** Transactions of our own under the stricter levels: the claim is written first. */
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

test('lease-mode statements are sent again when a session default of SERIALIZABLE fails them', async () => {
  const bench = await openBench({}, { max: 20, options: '-c default_transaction_isolation=serializable' })
  const claims = Array.from({ length: 20 }, () => claimRequest(freshKey()))
  await Promise.all(claims.map((claim) => bench.store.claim(claim)))
  const done = await Promise.all(
    claims.map((claim) => bench.store.complete({ ...claim, outcome: wish.outcome, retainMs: 1000 })),
  )
  expect(done).toEqual(claims.map(() => true))
  await bench.close()
})
