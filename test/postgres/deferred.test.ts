/** Constraints that only COMMIT checks: who loses there never answers success (rule 7). */
import { type Answer, type Retrysafe, retrysafe } from 'retrysafe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, beginRequest, freshKey, openBench, type Tx, wish } from './harness.js'

let bench: Bench
let safe: Retrysafe<Tx>

beforeAll(async () => {
  bench = await openBench()
  await bench.sql(
    'create table seat (number text, taken_by text, constraint one_each unique (number) deferrable initially deferred)',
  )
  safe = retrysafe({ store: bench.store })
})

afterAll(() => bench.close())

/** Both have taken the seat before either commits. */
async function bothTake(
  seat: string,
  seen: () => Promise<void>,
): Promise<PromiseSettledResult<Answer<string>>[]> {
  return Promise.allSettled(
    ['one', 'other'].map((who) =>
      safe.transaction({ scope: 's', key: `${who}-${seat}` }, async ({ tx }) => {
        await tx.query('insert into seat values ($1, $2)', [seat, who])
        await seen()
        return who
      }),
    ),
  )
}

/** Lets everybody go once `count` have come. */
function meeting(count: number): () => Promise<void> {
  let go: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    go = resolve
  })
  let come = 0
  return () => {
    come += 1
    if (come === count) go()
    return all
  }
}

test("of two that violate the work's own deferred constraint one answers; the other gets the database's word and no record", async () => {
  for (let round = 0; round < 10; round += 1) {
    const seat = freshKey()
    const ends = await bothTake(seat, meeting(2))
    const winners = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value.value] : []))
    const losers = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
    expect(winners).toHaveLength(1)
    // The work's own error, whole: it is not ours to take anything out of it.
    expect(losers).toMatchObject([
      { code: '23505', constraint: 'one_each', detail: expect.stringContaining(seat) },
    ])
    const { rows } = await bench.sql('select taken_by from seat where number = $1', [seat])
    expect(rows).toEqual([{ taken_by: winners[0] }])
    const [lost = ''] = ['one', 'other'].filter((who) => who !== winners[0])
    expect(await safe.show({ scope: 's', key: `${lost}-${seat}` })).toBeUndefined()
  }
})

test('a record whose own key is only checked at COMMIT: a rival there refuses the save, and its outcome is the answer', async () => {
  const own = await openBench()
  // As distributed databases check it; ON CONFLICT takes no such key, and the plain insert of a fresh transaction needs none.
  await own.sql(`alter table retrysafe.intent drop constraint intent_pkey,
    add constraint intent_pkey primary key (key, scope) deferrable initially deferred`)
  const key = freshKey()
  const open = await own.store.transactions.begin(beginRequest(key))
  await open.tx.query('insert into effect (key) values ($1)', [key])
  await own.sql(
    `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
      values ($1, 'tenant', 3, gen_random_uuid(), 1, '\\x01', now() + interval '1 h', '\\x02')`,
    [key],
  )
  expect(await open.save(wish)).toEqual({ kind: 'refused' })
  await open.rollback()
  expect(await own.effects(key)).toBe(0)
  await own.close()
})
