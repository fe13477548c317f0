/** Finished outcomes in memory, on request: filled after our own commit, never beyond retention, bounded in bytes (rule 6). */
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { movableClock, seededRandom } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import { createCache } from '../../dist/cache.js'

const intent = { scope: 's', key: 'k', input: 1 }

function setUp(options: object = {}) {
  const clock = movableClock()
  const real = memory({ clock })
  let asked = 0
  const store = {
    ...real,
    claim: (request: Parameters<typeof real.claim>[0]) => {
      asked += 1
      return real.claim(request)
    },
    find: (...request: Parameters<typeof real.find>) => {
      asked += 1
      return real.find(...request)
    },
    transactions: {
      ...real.transactions,
      begin: (request: Parameters<typeof real.transactions.begin>[0]) => {
        asked += 1
        return real.transactions.begin(request)
      },
    },
  }
  const safe = retrysafe({ store, clock, random: seededRandom(7), cacheBytes: 1_000_000, ...options })
  return { clock, real, safe, asked: () => asked }
}

test.each(['transaction', 'run'] as const)(
  'a replay of what this process has finished asks no store (%s)',
  async (mode) => {
    const { safe, asked } = setUp()
    await safe[mode](intent, () => 'done')
    const before = asked()
    expect(await safe[mode](intent, () => 'never')).toEqual({ value: 'done', replayed: true })
    await expect(safe[mode]({ ...intent, input: 2 }, () => 'never')).rejects.toMatchObject({
      code: 'KEY_REUSED',
    })
    expect(asked()).toBe(before)
  },
)

test('an outcome is not remembered beyond its retention', async () => {
  const { safe, clock } = setUp({ retainMs: 60_000 })
  await safe.run(intent, () => 'first')
  await clock.advance(59_999)
  expect(await safe.run(intent, () => 'second')).toEqual({ value: 'first', replayed: true })
  await clock.advance(2)
  expect(await safe.run(intent, () => 'second')).toEqual({ value: 'second', replayed: false })
})

test('what failed, and what the caller’s own transaction has not committed, is not remembered', async () => {
  const { safe, real, asked } = setUp()
  await expect(safe.transaction(intent, () => Promise.reject(new Error('no stock')))).rejects.toThrow(
    'no stock',
  )
  expect(await safe.transaction(intent, () => 'second')).toEqual({ value: 'second', replayed: false })
  const own = real.transactions.own()
  await safe.within(own.tx, { ...intent, key: 'inner' }, () => 'placed')
  own.rollback()
  const before = asked()
  expect(await safe.transaction({ ...intent, key: 'inner' }, () => 'anew')).toEqual({
    value: 'anew',
    replayed: false,
  })
  expect(asked()).toBe(before + 1)
})

test('whether an outcome may be shown is asked for remembered ones too', async () => {
  const { safe } = setUp({ mayReplay: () => false })
  await safe.run(intent, () => 'done')
  await expect(safe.run(intent, () => 'never')).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
})

test('the bytes are bounded, what was used longest ago goes first, and no larger block is kept alive', () => {
  const cache = createCache(movableClock(), 4000)
  const block = Buffer.alloc(1_000_000, 1)
  const stored = (at: number) => ({
    outcome: block.subarray(at, at + 500),
    fingerprint: block.subarray(at, at + 33),
    generation: at,
  })
  for (const at of [1, 2, 3]) cache.put(`k${at}`, stored(at), 1e9)
  cache.get('k1')
  for (const at of [4, 5]) cache.put(`k${at}`, stored(at), 1e9)
  expect([1, 2, 3, 4, 5].map((at) => cache.get(`k${at}`)?.generation)).toEqual([1, undefined, 3, 4, 5])
  expect(cache.get('k1')?.outcome.buffer.byteLength).toBe(500)
  cache.put('huge', { ...stored(1), outcome: block }, 1e9)
  expect(cache.get('huge')).toBeUndefined()
  expect(cache.get('k5')?.generation).toBe(5)
})
