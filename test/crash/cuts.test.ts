/**
 * Every message that a request sends to the database, cut before it and cut behind it, or stalled: then a retry on a healthy connection
 * finds the one effect or makes it. `test/sweeps` has what takes longer.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutHall, cuts, openHall, stalls } from './cut-runs.js'

let hall: CutHall

beforeAll(async () => {
  hall = await openHall()
})

afterAll(async () => {
  await hall?.close()
})

test.each(['transaction', 'existing', 'savedAlone', 'pinned', 'commit', 'plain', 'within'] as const)(
  'an attempt in the way "%s" that is cut at any message leaves one effect',
  async (way) => {
    const messages = await hall.record(way)
    expect(messages.length).toBeGreaterThan(10)
    expect(await hall.drive(way, cuts(messages))).toEqual([])
  },
)

test.each(['transaction', 'commit'] as const)(
  'an attempt in the way "%s" that stalls past its time at any message leaves one effect',
  async (way) => {
    expect(await hall.drive(way, stalls(way, await hall.record(way), 'one'))).toEqual([])
  },
)

test('a failure that is kept alone has left no effect', async () => {
  const { rows } = await hall.outside.query(
    `select count(*)::int as n from effects where key like 'savedAlone%' or key like 'pinned%'`,
  )
  expect(rows[0].n).toBe(0)
})

test('and so it stays', async () => {
  expect(await hall.again()).toEqual([])
})
