/** Attempts of one intent in one process share one claim and one bounded wait (rule 6). */
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { movableClock, seededRandom } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import { RetrysafeError } from '../../dist/errors.js'
import { fingerprintOfBytes } from '../../dist/fingerprint.js'
import { createSharing } from '../../dist/sharing.js'

const intent = { scope: 's', key: 'k', input: 1 }

function setUp(options: object = {}) {
  const clock = movableClock()
  const real = memory({ clock })
  const calls = { begin: 0, claim: 0, find: 0 }
  const store = {
    ...real,
    claim: (request: Parameters<typeof real.claim>[0]) => {
      calls.claim += 1
      return real.claim(request)
    },
    find: (...asked: Parameters<typeof real.find>) => {
      calls.find += 1
      return real.find(...asked)
    },
    transactions: {
      ...real.transactions,
      begin: (request: Parameters<typeof real.transactions.begin>[0]) => {
        calls.begin += 1
        return real.transactions.begin(request)
      },
    },
  }
  const safe = retrysafe({ store, clock, random: seededRandom(5), ...options })
  const elsewhere = retrysafe({ store: real, clock, random: seededRandom(6) })
  return { clock, safe, elsewhere, calls }
}

function gate<Value>() {
  let open: (value: Value) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const opened = new Promise<Value>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { open, fail, opened }
}

const modes = ['transaction', 'run'] as const

test.each(modes)('500 attempts at once ask the store once (%s)', async (mode) => {
  const { safe, calls } = setUp({ whileRunning: { waitMs: 60_000 } })
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, index) => safe[mode](intent, () => index)),
  )
  expect(answers.filter(({ replayed }) => !replayed)).toEqual([{ value: 0, replayed: false }])
  expect(new Set(answers.map(({ value }) => value))).toEqual(new Set([0]))
  expect(calls.begin + calls.claim + calls.find).toBe(1)
})

test.each(modes)('500 replays at once ask the store once (%s)', async (mode) => {
  const { safe, calls } = setUp()
  await safe[mode](intent, () => 'first')
  const before = calls.begin + calls.claim
  const answers = await Promise.all(Array.from({ length: 500 }, () => safe[mode](intent, () => 'never')))
  expect(answers.every(({ value, replayed }) => value === 'first' && replayed)).toBe(true)
  expect(calls.begin + calls.claim - before).toBe(1)
})

test.each(modes)(
  'a follower is refused while the work runs, or waits as long as the option says (%s)',
  async (mode) => {
    const { safe, clock } = setUp()
    const work = gate<string>()
    const first = safe[mode](intent, () => work.opened)
    await clock.advance(1)
    await expect(safe[mode](intent, () => 'never')).rejects.toMatchObject({
      code: 'IN_PROGRESS',
      status: 409,
    })
    work.open('done')
    expect(await first).toEqual({ value: 'done', replayed: false })
  },
)

test.each(modes)('a wait is bounded: the follower is refused when it is over (%s)', async (mode) => {
  const { safe, clock } = setUp({ whileRunning: { waitMs: 1000 } })
  const work = gate<string>()
  const first = safe[mode](intent, () => work.opened)
  await clock.advance(1)
  const refused = expect(safe[mode](intent, () => 'never')).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  await clock.advance(1000)
  await refused
  work.open('done')
  await first
})

test.each(modes)('after a failure one of the followers claims, and the rest follow it (%s)', async (mode) => {
  const { safe, clock, calls } = setUp({ whileRunning: { waitMs: 60_000 } })
  const work = gate<string>()
  const first = expect(safe[mode](intent, () => work.opened)).rejects.toThrow('no stock')
  await clock.advance(1)
  let runs = 0
  const second = () => {
    runs += 1
    return `run ${runs}`
  }
  const rest = Array.from({ length: 20 }, () => safe[mode](intent, second))
  await clock.advance(1)
  work.fail(new Error('no stock'))
  await first
  const answers = await Promise.all(rest)
  expect(runs).toBe(1)
  expect(new Set(answers.map(({ value }) => value))).toEqual(new Set(['run 1']))
  expect(calls.begin + calls.claim).toBe(2)
})

test.each(modes)(
  'another request under a running key is a mismatch at once, not after the wait (%s)',
  async (mode) => {
    const { safe, clock } = setUp({ whileRunning: { waitMs: 60_000 } })
    const work = gate<string>()
    const first = safe[mode](intent, () => work.opened)
    await clock.advance(1)
    await expect(safe[mode]({ ...intent, input: 2 }, () => 'never')).rejects.toMatchObject({
      code: 'KEY_REUSED',
    })
    work.open('done')
    await first
  },
)

test('a waiter for an owner elsewhere gets its outcome, polls in growing steps, and leads its followers', async () => {
  const { safe, elsewhere, clock, calls } = setUp({ whileRunning: { waitMs: 60_000 } })
  const work = gate<string>()
  const owner = elsewhere.run(intent, () => work.opened)
  await clock.advance(1)
  const waiters = Array.from({ length: 30 }, () => safe.run(intent, () => 'never'))
  await clock.advance(2000)
  // 10, 20, 40, 80, then 160 ms, up to half of each taken off by chance: not one look a waiter.
  expect(calls.find).toBeLessThan(30)
  expect(calls.claim).toBe(1)
  work.open('done')
  await owner
  await clock.advance(200)
  for (const answer of await Promise.all(waiters)) expect(answer).toEqual({ value: 'done', replayed: true })
})

test('a waiter takes over when the owner elsewhere is gone', async () => {
  const { safe, elsewhere, clock } = setUp({ whileRunning: { waitMs: 120_000 } })
  void elsewhere.run(intent, () => new Promise(() => undefined))
  await clock.advance(1)
  await elsewhere.close()
  const waiter = safe.run(intent, ({ attempt }) => attempt)
  await clock.advance(31_000)
  expect(await waiter).toEqual({ value: 2, replayed: false })
})

test('a store failure at the claim reaches every follower, and the next attempt asks again', async () => {
  const clock = movableClock()
  const real = memory({ clock })
  let down = true
  const claim: typeof real.claim = (request) =>
    down ? Promise.reject(new Error('down')) : real.claim(request)
  const safe = retrysafe({ store: { ...real, claim }, clock })
  const all = await Promise.allSettled(Array.from({ length: 10 }, () => safe.run(intent, () => 1)))
  for (const one of all) expect(one).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } })
  down = false
  expect(await safe.run(intent, () => 1)).toEqual({ value: 1, replayed: false })
})

test('the patience of a leader is its own: a follower with more of it asks again, within its own limit', async () => {
  const clock = movableClock()
  const sharing = createSharing(clock)
  const fingerprint = fingerprintOfBytes(Uint8Array.of(1))
  const hasty = sharing.lead('k', fingerprint, 0)
  const patient = sharing.follow('k', fingerprint, 300)
  const equallyHasty = sharing.follow('k', fingerprint, 0)
  await clock.advance(100)
  const error = new RetrysafeError('IN_PROGRESS')
  hasty?.end({ kind: 'refused', error })
  await expect(equallyHasty).rejects.toBe(error)
  expect(await patient).toMatchObject({ until: 300 })
})

test('a follower is told to come back when its leader’s lease ends', async () => {
  const { safe, clock } = setUp()
  const work = gate<string>()
  const first = safe.run(intent, () => work.opened)
  await clock.advance(1)
  await expect(safe.run(intent, () => 'never')).rejects.toMatchObject({ retryAfterMs: 5000 })
  work.open('done')
  await first
})

test('an owner elsewhere of which nothing can be told makes no follower a mismatch', async () => {
  const clock = movableClock()
  const real = memory({ clock })
  let hidden = true
  const claim: typeof real.claim = (request) =>
    hidden ? Promise.resolve({ claimed: false, seen: undefined }) : real.claim(request)
  const safe = retrysafe({ store: { ...real, claim }, clock, whileRunning: { waitMs: 1000 } })
  const one = safe.run(intent, () => 'one')
  await clock.advance(1)
  let early = true
  const other = expect(
    safe.run({ ...intent, input: 2 }, () => 'two').finally(() => expect(early).toBe(false)),
  )
  const refused = other.rejects.toMatchObject({ code: 'KEY_REUSED' })
  await clock.advance(1)
  early = false
  hidden = false
  await clock.advance(400)
  expect(await one).toMatchObject({ value: 'one' })
  await refused
})
