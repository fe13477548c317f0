/** Batches that name the same keys in opposite order do not lock each other out. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, beginRequest, claimRequest, freshKey, openBench } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench({}, { max: 30 })
  // Found at once: two that waited for each other would end in 40P01 within the test.
  await bench.sql(
    `do $$ begin execute format('alter database %I set deadlock_timeout = ''10ms''', current_database()); end $$`,
  )
})

afterAll(() => bench.close())

const rounds = 50

function alphabet(): string[] {
  const end = freshKey()
  return Array.from({ length: 26 }, (_, index) => `${String.fromCharCode(97 + index)}-${end}`)
}

async function deadlocks(): Promise<number> {
  const { rows } = await bench.sql(
    'select deadlocks::int as n from pg_stat_database where datname = current_database()',
  )
  return rows[0].n
}

test('renewals of the same leases, forwards and backwards at once, all arrive or say that a row was locked', async () => {
  const rival = bench.another()
  const held = alphabet().map((key) => claimRequest(key))
  await Promise.all(held.map((claim) => bench.store.claim(claim)))
  for (let round = 0; round < rounds; round += 1) {
    const answers = await Promise.all([
      bench.store.renew(held),
      rival.store.renew([...held].reverse()),
      bench.store.renew([...held].reverse()),
      rival.store.renew(held),
    ])
    // False would be a lost lease.
    expect(answers.flat()).not.toContain(false)
  }
  expect(await bench.store.renew(held)).toEqual(held.map(() => true))
  expect(await deadlocks()).toBe(0)
})

test('lease claims and transactions on the same keys, forwards and backwards at once: one owner each', async () => {
  const rival = bench.another()
  for (let round = 0; round < rounds / 5; round += 1) {
    const keys = alphabet()
    const claim = async (key: string) => (await bench.store.claim(claimRequest(key))).claimed
    const begin = async (key: string) => {
      const open = await rival.store.transactions.begin(beginRequest(key))
      const granted = open.granted && open.seen === undefined
      if (granted)
        await open.save({
          fingerprint: Buffer.from('f'),
          outcome: Buffer.from('o'),
          retainMs: 60_000,
          undoWork: false,
        })
      await open.rollback()
      return granted
    }
    const claims = Promise.all(keys.map(claim))
    const begun = Promise.all([...keys].reverse().map(begin))
    const [one, other] = [await claims, (await begun).reverse()]
    // Both refused is right as well: each saw the other one at it.
    expect(keys.filter((_, index) => one[index] && other[index])).toEqual([])
  }
  expect(await deadlocks()).toBe(0)
})
