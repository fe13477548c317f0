/** `commit` in lease mode: the last writes and the outcome together, fenced (rules 3, 10, 26). */
import { type LeaseAttempt, retrysafe } from 'retrysafe'
import { type MemoryTx, memory } from 'retrysafe/memory'
import { movableClock, seededRandom } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import type { OpenTransaction, SaveAnswer, Transactions } from '../../dist/store.js'

const intent = { scope: 's', key: 'k', input: 1 }
type Saving = (real: () => Promise<SaveAnswer>) => Promise<SaveAnswer>

/** An instance whose commits go through `saving`. */
function setUp(saving: Saving = (real) => real()) {
  const clock = movableClock()
  const store = memory({ clock })
  const transactions: Transactions<MemoryTx> = {
    ...store.transactions,
    open: async (owned, timeoutMs) => {
      const open: OpenTransaction<MemoryTx> = await store.transactions.open(owned, timeoutMs)
      return { ...open, save: (wish) => saving(() => open.save(wish)) }
    },
  }
  const safe = retrysafe({ store: { ...store, transactions }, clock, random: seededRandom(2), leaseMs: 3000 })
  const effects: string[] = []
  const write = (attempt: LeaseAttempt<MemoryTx>, what: string) =>
    attempt.commit((tx) => {
      tx.defer(() => effects.push(what))
      return what
    })
  return { clock, store, safe, effects, write }
}

test('commit’s value is the outcome, whatever the work returns or throws afterwards', async () => {
  const { safe, effects, write } = setUp()
  const first = await safe.run(intent, async (attempt) => {
    await write(attempt, 'order')
    throw new Error('the mail could not be sent')
  })
  expect(first).toEqual({ value: 'order', replayed: false })
  expect(await safe.run(intent, () => 'never')).toEqual({ value: 'order', replayed: true })
  expect(effects).toEqual(['order'])
})

test('an attempt commits once: a second commit, or one after the end, is an error', async () => {
  const { safe, effects, write } = setUp()
  let kept: LeaseAttempt<MemoryTx> | undefined
  await safe.run(intent, async (attempt) => {
    kept = attempt
    await write(attempt, 'one')
    await expect(write(attempt, 'two')).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
  })
  if (kept === undefined) throw new Error('the work did not run')
  await expect(write(kept, 'three')).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
  expect(effects).toEqual(['one'])
})

test('a commit that throws writes nothing, and the work may commit again', async () => {
  const { safe, effects, write } = setUp()
  const answer = await safe.run(intent, async (attempt) => {
    const broken = attempt.commit((tx) => {
      tx.defer(() => effects.push('half'))
      throw new Error('no stock')
    })
    await expect(broken).rejects.toThrow('no stock')
    return write(attempt, 'backorder')
  })
  expect(answer.value).toBe('backorder')
  expect(effects).toEqual(['backorder'])
})

test('a commit that is still under way when the work returns is waited for', async () => {
  const { safe, write } = setUp(async (real) => {
    await new Promise((resume) => setImmediate(resume))
    return real()
  })
  const answer = await safe.run<unknown>(intent, (attempt) => {
    void write(attempt, 'order')
    return 'returned early'
  })
  expect(answer).toEqual({ value: 'order', replayed: false })
})

test('a commit whose answer was lost but which landed is the outcome', async () => {
  const { safe, effects, write } = setUp(async (real) => {
    await real()
    return { kind: 'ambiguous', error: new Error('cut') }
  })
  expect(await safe.run(intent, (attempt) => write(attempt, 'order'))).toEqual({
    value: 'order',
    replayed: false,
  })
  expect(effects).toEqual(['order'])
})

test('a commit that was lost on its way is rolled back for certain before the claim is released (rule 10)', async () => {
  let landed: (() => Promise<SaveAnswer>) | undefined
  const { safe, effects, write } = setUp(async (real) => {
    landed ??= real
    return { kind: 'ambiguous', error: new Error('cut') }
  })
  const first = safe.run(intent, (attempt) => write(attempt, 'order'))
  await expect(first).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryAfterMs: 1000 })
  // The old transaction arrives after all: its token is not the owner's any more.
  expect(await landed?.()).toEqual({ kind: 'refused' })
  expect(effects).toEqual([])
  expect(await safe.run(intent, ({ attempt }) => attempt)).toEqual({ value: 2, replayed: false })
})

test('a commit that nobody can tell of is not released: the lease runs out', async () => {
  const { safe, store, clock, write } = setUp(async () => ({ kind: 'ambiguous', error: new Error('cut') }))
  const { renameOwner } = store.transactions
  Object.assign(store.transactions, { renameOwner })
  const blind = retrysafe({
    store: {
      ...store,
      transactions: {
        ...store.transactions,
        open: async (owned, timeoutMs) => {
          const open = await store.transactions.open(owned, timeoutMs)
          return { ...open, save: async () => ({ kind: 'ambiguous', error: new Error('cut') }) as const }
        },
        renameOwner: async () => 'locked',
      },
      renew: () => Promise.reject(new Error('down')),
    },
    clock,
    leaseMs: 3000,
  })
  const unclear = expect(blind.run(intent, (attempt) => write(attempt, 'order'))).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  await clock.advance(1000)
  await expect(safe.run(intent, () => 1)).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  await clock.advance(2500)
  await unclear
  expect(await safe.run(intent, ({ attempt }) => attempt)).toMatchObject({ value: 2 })
})

test('a commit that never settles costs the caller its time limit and no more, and cannot land later', async () => {
  const clock = movableClock()
  const store = memory({ clock })
  const safe = retrysafe({ store, clock, random: seededRandom(9), leaseMs: 3000, workTimeoutMs: 5000 })
  const effects: string[] = []
  let wake: () => void = () => undefined
  const hung = safe.run(intent, ({ commit }) =>
    commit(async (tx) => {
      await new Promise<void>((resume) => {
        wake = resume
      })
      tx.defer(() => effects.push('zombie'))
    }),
  )
  const refused = expect(hung).rejects.toMatchObject({ code: 'WORK_TIMEOUT' })
  await clock.advance(8100)
  await refused
  expect(await safe.run(intent, ({ attempt }) => attempt)).toEqual({ value: 2, replayed: false })
  wake()
  await new Promise((resume) => setImmediate(resume))
  expect(effects).toEqual([])
})
