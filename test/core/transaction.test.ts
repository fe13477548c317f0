/** Transaction mode at its hard moments: commits of unclear end, rivals, time limits, failures (rules 1, 10, 11 and 21). */
import { type EventName, retrysafe } from 'retrysafe'
import { type MemoryTx, memory } from 'retrysafe/memory'
import { movableClock, seededRandom } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import type { OpenTransaction, SaveAnswer, Transactions } from '../../dist/store.js'

const intent = { scope: 's', key: 'k', input: { amount: 5 } }

interface Faults {
  save?: (real: () => Promise<SaveAnswer>, open: OpenTransaction<MemoryTx>) => Promise<SaveAnswer>
  transactions?: Partial<Transactions<MemoryTx>>
}

function setUp({ save, transactions }: Faults = {}, options: object = {}) {
  const clock = movableClock()
  const store = memory({ clock })
  const effects: string[] = []
  const events: EventName[] = []
  const faulty: Transactions<MemoryTx> = {
    ...store.transactions,
    begin: async (request) => {
      const open = await store.transactions.begin(request)
      return save ? { ...open, save: (wish) => save(() => open.save(wish), open) } : open
    },
    ...transactions,
  }
  const safe = retrysafe({
    store: { ...store, transactions: faulty },
    clock,
    random: seededRandom(3),
    ...options,
  })
  const rival = retrysafe({ store, clock, random: seededRandom(4) })
  for (const name of [
    'claimed',
    'completed',
    'released',
    'txUnused',
    'storeError',
    'replayed',
    'clockGap',
  ] as const)
    safe.on(name, () => events.push(name))
  const order = (what: string) =>
    safe.transaction(intent, ({ tx }) => {
      tx.defer(() => effects.push(what))
      return what
    })
  return { clock, store, safe, rival, effects, events, order }
}

test('a commit whose answer was lost but which landed is read back, and is the first answer', async () => {
  const { order, effects, safe } = setUp({
    save: async (real) => {
      await real()
      return { kind: 'ambiguous', error: new Error('cut') }
    },
  })
  expect(await order('one')).toEqual({ value: 'one', replayed: false })
  expect(await safe.transaction(intent, () => 'never')).toEqual({ value: 'one', replayed: true })
  expect(effects).toEqual(['one'])
})

test('a commit that was lost on its way is a rollback once the lock is free: 503, and the retry runs', async () => {
  let cut = true
  const { order, effects } = setUp({
    save: async (real, open) => {
      if (!cut) return real()
      cut = false
      await open.rollback()
      return { kind: 'ambiguous', error: new Error('cut') }
    },
  })
  await expect(order('lost')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryAfterMs: 1000 })
  expect(await order('two')).toEqual({ value: 'two', replayed: false })
  expect(effects).toEqual(['two'])
})

test('while the old transaction may still land, the caller is told 503 and never that it failed', async () => {
  const { order, clock } = setUp({
    save: async () => ({ kind: 'ambiguous', error: new Error('cut') }),
    transactions: { readBack: async () => ({ undecided: true }) },
  })
  const unclear = expect(order('maybe')).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('not known yet'),
  })
  await clock.advance(6000)
  await unclear
})

test('a rival’s record that stands where ours should be written is the answer', async () => {
  const { order, rival, effects } = setUp({
    save: async (_, open) => {
      await open.rollback()
      await rival.transaction(intent, () => 'the rival’s')
      return { kind: 'refused' }
    },
  })
  expect(await order('mine')).toEqual({ value: 'the rival’s', replayed: true })
  expect(effects).toEqual([])
})

test('a rival’s record of another request makes it a mismatch', async () => {
  const { order, rival } = setUp({
    save: async (_, open) => {
      await open.rollback()
      await rival.transaction({ ...intent, input: 'other' }, () => 1)
      return { kind: 'refused' }
    },
  })
  await expect(order('mine')).rejects.toMatchObject({ code: 'KEY_REUSED' })
})

test('a throw rolls the writes back and frees the key', async () => {
  const { safe, effects, events, order, store } = setUp()
  const failed = safe.transaction(intent, ({ tx }) => {
    tx.defer(() => effects.push('half'))
    throw new Error('no stock')
  })
  await expect(failed).rejects.toThrow('no stock')
  expect(await store.operating.count()).toMatchObject({ done: 0, running: 0 })
  expect(await order('whole')).toEqual({ value: 'whole', replayed: false })
  expect({ effects, events }).toEqual({
    effects: ['whole'],
    events: ['claimed', 'released', 'claimed', 'completed'],
  })
})

test('past the point of no return a failure is kept alone: its writes are undone, and every retry gets it again', async () => {
  const { safe, effects } = setUp()
  const failure = Object.assign(new Error('card refused'), { code: 'card_declined', status: 402 })
  const first = safe.transaction(intent, ({ tx, keepFailure }) => {
    tx.defer(() => effects.push('half'))
    keepFailure()
    throw failure
  })
  await expect(first).rejects.toBe(failure)
  const again = safe.transaction(intent, () => 'never')
  await expect(again).rejects.toMatchObject({ message: 'card refused', code: 'card_declined', status: 402 })
  expect(effects).toEqual([])
})

test('work that takes too long is rolled back, told so, and cannot write afterwards', async () => {
  const { safe, clock, effects, order } = setUp({}, { workTimeoutMs: 200 })
  let wake: () => void = () => undefined
  const zombie: { error?: unknown } = {}
  const late = safe.transaction(intent, async ({ tx, signal }) => {
    await new Promise<void>((resume) => {
      wake = resume
    })
    expect(signal.reason).toMatchObject({ code: 'WORK_TIMEOUT' })
    try {
      tx.defer(() => effects.push('zombie'))
    } catch (error) {
      zombie.error = error
    }
  })
  const refused = expect(late).rejects.toMatchObject({ code: 'WORK_TIMEOUT', status: 503 })
  await clock.advance(200)
  await refused
  expect(await order('next')).toEqual({ value: 'next', replayed: false })
  wake()
  await new Promise((resume) => setImmediate(resume))
  expect(zombie.error).toMatchObject({ code: 'ATTEMPT_SETTLED' })
  expect(effects).toEqual(['next'])
})

test('a victim of a rival is told to come back; the work is not run again behind the caller’s back (rule 21)', async () => {
  let runs = 0
  const victim = Object.assign(new Error('could not serialize access'), { code: '40001' })
  const { safe } = setUp({ transactions: { isConflict: (error) => error === victim } })
  const refused = safe.transaction(intent, () => {
    runs += 1
    throw victim
  })
  await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT', status: 503, cause: victim })
  expect(runs).toBe(1)
})

test('a transaction that the work ended or spoilt is an error, and nothing is stored (rule 21)', async () => {
  const { order, store } = setUp({
    save: async (_, open) => {
      await open.rollback()
      return { kind: 'aborted' }
    },
  })
  await expect(order('x')).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', status: 500 })
  expect(await store.operating.count()).toMatchObject({ done: 0 })
})

test('an error of the user’s own constraint at COMMIT passes through untouched (rule 7)', async () => {
  const own = Object.assign(new Error('duplicate e-mail'), { code: '23505', constraint: 'users_email' })
  const { order } = setUp({
    save: async (_, open) => {
      await open.rollback()
      return { kind: 'rolledBack', error: own }
    },
  })
  await expect(order('x')).rejects.toBe(own)
})

test('a kept success that never used tx is reported: its writes are not covered (rule 24)', async () => {
  const { safe, events } = setUp()
  await safe.transaction(intent, () => 'wrote elsewhere')
  expect(events).toEqual(['claimed', 'completed', 'txUnused'])
})

test('whether an outcome may be shown again is asked each time, and a no stores nothing and runs nothing', async () => {
  const asked: unknown[] = []
  let allowed = true
  const { safe, order } = setUp({}, { mayReplay: (record: unknown) => asked.push(record) > 0 && allowed })
  await order('x')
  expect(asked).toEqual([])
  expect(await order('y')).toEqual({ value: 'x', replayed: true })
  allowed = false
  await expect(order('z')).rejects.toMatchObject({ code: 'REPLAY_REFUSED', status: 403 })
  expect(asked).toHaveLength(2)
  expect(asked[0]).toMatchObject({ key: 'k', scope: 's', operation: undefined, status: undefined })
  await expect(safe.transaction({ ...intent, input: 0 }, () => 1)).rejects.toMatchObject({
    code: 'KEY_REUSED',
  })
})

test('an outcome that is too large, or that JSON cannot hold, never causes a second run (rule 12)', async () => {
  const { safe } = setUp({}, { maxReplyBytes: 100 })
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  let runs = 0
  for (const [key, value] of Object.entries({ large: 'x'.repeat(101), big: 5n, cyclic })) {
    const work = () => {
      runs += 1
      return value
    }
    const first = await safe.transaction({ ...intent, key }, work)
    expect(first.value).toBe(value)
    await expect(safe.transaction({ ...intent, key }, work)).rejects.toMatchObject({ code: 'NOT_REPLAYABLE' })
  }
  expect(runs).toBe(3)
})

test('the first caller gets what every later one gets: decoded from the stored bytes (rule 9)', async () => {
  const { safe } = setUp()
  const value = { at: new Date(0), gone: undefined, n: [1, undefined] }
  const first = await safe.transaction(intent, () => value as unknown)
  const again = await safe.transaction(intent, () => 'never' as unknown)
  expect(first.value).toEqual({ at: '1970-01-01T00:00:00.000Z', n: [1, null] })
  expect(again.value).toEqual(first.value)
})

test('a store clock far from ours is told, and neither frees a done key early', async () => {
  const { safe, clock, store, events } = setUp({}, { retainMs: 60_000 })
  await safe.transaction(intent, () => 1)
  const far = retrysafe({ store, clock: { ...clock, now: () => clock.now() - 3_600_000 } })
  await clock.advance(120_000)
  expect(await far.transaction(intent, () => 2)).toEqual({ value: 1, replayed: true })
  expect(await safe.transaction(intent, () => 3)).toEqual({ value: 3, replayed: false })
  const gaps: unknown[] = []
  far.on('clockGap', (event) => gaps.push(event))
  await far.transaction(intent, () => 2)
  expect(gaps).toEqual([{ gapMs: 3_600_000 }])
  expect(events).not.toContain('clockGap')
})

test.each([
  ['nothing at all', undefined],
  ['null', null],
  ['an object without a text', Object.create(null)],
  [
    'an error whose getters throw',
    Object.defineProperty(new Error('x'), 'status', {
      get: () => {
        throw new Error('getter')
      },
    }),
  ],
])('past the point of no return %s that is thrown is kept like any failure', async (_, thrown) => {
  for (const mode of ['transaction', 'run'] as const) {
    const { safe } = setUp()
    let runs = 0
    const work = ({ keepFailure }: { keepFailure(): void }) => {
      runs += 1
      keepFailure()
      throw thrown
    }
    const first = await safe[mode](intent, work).catch((error: unknown) => ({ error }))
    expect(first).toEqual({ error: thrown })
    await expect(safe[mode](intent, work)).rejects.toMatchObject({ replayed: true })
    expect(runs).toBe(1)
  }
})

test('a kept failure that is too large reaches its first caller whole', async () => {
  const { safe } = setUp({}, { maxReplyBytes: 50 })
  const failure = new Error('x'.repeat(100))
  const work = ({ keepFailure }: { keepFailure(): void }) => {
    keepFailure()
    throw failure
  }
  await expect(safe.run(intent, work)).rejects.toBe(failure)
  await expect(safe.run(intent, work)).rejects.toMatchObject({ code: 'NOT_REPLAYABLE' })
})

test('a keep that does not answer at once is refused, and its transaction is not left open', async () => {
  const { safe, store } = setUp({}, { keep: (async () => false) as never })
  await expect(safe.transaction(intent, () => 1)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  await expect(safe.run(intent, () => 1)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  expect(await store.operating.count()).toMatchObject({ done: 0, running: 0 })
})

test('a listener that fails, now or later, changes nothing', async () => {
  const { safe } = setUp()
  safe.on('claimed', () => {
    throw new Error('now')
  })
  safe.on('completed', async () => {
    throw new Error('later')
  })
  expect(await safe.transaction(intent, () => 1)).toEqual({ value: 1, replayed: false })
  await new Promise((resume) => setImmediate(resume))
})

test('an effect of the memory store that throws commits nothing and holds nothing', async () => {
  const { safe } = setUp()
  const broken = safe.transaction(intent, ({ tx }) =>
    tx.defer(() => {
      throw new Error('must not')
    }),
  )
  await expect(broken).rejects.toThrow('must not')
  expect(await safe.transaction(intent, () => 'again')).toEqual({ value: 'again', replayed: false })
})

test.each([null, undefined, 5, 'tx'])('within refuses %j as a transaction', async (tx) => {
  const { safe } = setUp()
  await expect(safe.within(tx as never, intent, () => 1)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})
