/** The long form of `test/crash/cuts.test.ts`: every way, every message, every kind of stall; and renewals. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutHall, cuts, openHall, stalls } from '../crash/cut-runs.js'

let hall: CutHall

beforeAll(async () => {
  hall = await openHall(12)
})

afterAll(async () => {
  await hall?.close()
})

test('an attempt that is cut at any message of its renewals leaves one effect', async () => {
  expect(await hall.drive('renewed', cuts(await hall.record('renewed')))).toEqual([])
})

test.each([
  'transaction',
  'existing',
  'savedAlone',
  'pinned',
  'commit',
  'plain',
  'within',
  'renewed',
] as const)(
  'an attempt in the way "%s" that stalls anywhere and in any manner leaves one effect',
  async (way) => {
    expect(await hall.drive(way, stalls(way, await hall.record(way), 'all'))).toEqual([])
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
