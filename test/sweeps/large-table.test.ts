/** A table of 200,000 expired rows is swept while claims, renewals and takeovers go on in it (rule 20). */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, claimRequest, freshKey, openBench } from '../postgres/harness.js'

const rows = 200_000
const batchLimit = 1000

let bench: Bench

beforeAll(async () => {
  bench = await openBench({}, { max: 10 })
  await bench.sql(
    `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
      select 'k' || g, 'tenant', 3, gen_random_uuid(), g, 'f', now() - interval '10 minutes', 'o'
      from generate_series(1, $1::int) g`,
    [rows],
  )
  await bench.sql('analyze retrysafe.intent')
}, 120_000)

afterAll(() => bench.close())

async function states(keys: readonly string[]): Promise<Record<string, number>> {
  const { rows: counted } = await bench.sql(
    'select state, count(*)::int as n from retrysafe.intent where key = any($1) group by state',
    [keys],
  )
  return Object.fromEntries(counted.map(({ state, n }) => [state, n]))
}

test('four sweepers remove what is past in bounded batches; what is claimed, renewed or taken over meanwhile stays', async () => {
  const others = Array.from({ length: 3 }, () => bench.another())
  const live = Array.from({ length: 50 }, () => claimRequest(freshKey()))
  await Promise.all(live.map((claim) => bench.store.claim(claim)))
  let sweeping = 4
  let swept = 0
  const sweep = async ({ store }: Pick<Bench, 'store'>) => {
    for (let batch = -1; batch !== 0; swept += batch) {
      batch = await store.sweeping.sweep({ limit: batchLimit, callerNowMs: Date.now() })
      expect(batch).toBeLessThanOrEqual(batchLimit)
    }
    sweeping -= 1
  }
  const claimed: string[] = []
  const claim = async () => {
    while (sweeping > 0) {
      const request = claimRequest(freshKey())
      expect(await bench.store.claim(request)).toMatchObject({ claimed: true })
      claimed.push(request.identity.key)
    }
  }
  const renew = async () => {
    while (sweeping > 0) expect(await bench.store.renew(live)).toEqual(live.map(() => true))
  }
  // From both ends of the table, so that some are taken over right in front of a sweeper.
  const takenOver: string[] = []
  let gone = 0
  const takeOver = async (first: number, step: number) => {
    for (let at = first; sweeping > 0 && at >= 1 && at <= rows; at += step) {
      const request = claimRequest(`k${at}`)
      const answer = await bench.store.claim(request)
      if (answer.claimed) {
        // Swept already: it is a fresh claim.
        gone += 1
        takenOver.push(request.identity.key)
      } else if (answer.seen?.live === false) {
        const { owner, generation } = answer.seen
        const granted = await bench.store.takeOver({ ...request, seen: { owner, generation } })
        if (granted !== undefined) takenOver.push(request.identity.key)
      }
    }
  }
  await Promise.all([
    ...[bench, ...others].map(sweep),
    claim(),
    claim(),
    renew(),
    takeOver(1, 7),
    takeOver(rows, -11),
  ])
  const replaced = takenOver.length - gone
  expect(swept).toBe(rows - replaced)
  expect(replaced).toBeGreaterThan(0)
  expect(await states(takenOver)).toEqual({ 1: takenOver.length })
  expect(await states(claimed)).toEqual({ 1: claimed.length })
  expect(await states(live.map(({ identity }) => identity.key))).toEqual({ 1: live.length })
  expect(await bench.store.sweeping.sweep({ limit: 10, callerNowMs: Date.now() })).toBe(0)
}, 180_000)

test('a sweeper passes over rows that somebody holds, and waits for none of them', async () => {
  const { rows: planted } = await bench.sql(
    `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
      select 'held' || g, 'tenant', 3, gen_random_uuid(), g, 'f', now() - interval '10 minutes', 'o'
      from generate_series(1, 100) g returning key`,
  )
  const holder = await bench.another().pool.connect()
  await holder.query('begin')
  await holder.query(`select 1 from retrysafe.intent where key like 'held_' for update`)
  // Were it to wait, it would wait for ever: the rows are let go only afterwards.
  expect(await bench.store.sweeping.sweep({ limit: 1000, callerNowMs: Date.now() })).toBe(planted.length - 9)
  await holder.query('rollback')
  holder.release()
  expect(await bench.store.sweeping.sweep({ limit: 1000, callerNowMs: Date.now() })).toBe(9)
})
