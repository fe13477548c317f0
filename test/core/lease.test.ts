/** Lease mode when renewals, completions and their answers get lost (rules 2, 3, 8, 10 and 18). */
import { type EventName, type LeaseAttempt, retrysafe, type Store } from 'retrysafe'
import { type MemoryStore, type MemoryTx, memory } from 'retrysafe/memory'
import { movableClock, seededRandom } from 'retrysafe/testing'
import { expect, test } from 'vitest'

type Faults = (store: MemoryStore) => Partial<Store<MemoryTx>>
const intent = { scope: 's', key: 'k', input: { amount: 5 } }

function setUp(faults: Faults = () => ({}), options: object = {}) {
  const clock = movableClock()
  const store = memory({ clock })
  const events: EventName[] = []
  let seed = 0
  const make = (over: Faults) => {
    // Seeds of their own: two processes never draw the same owner token.
    seed += 1
    const safe = retrysafe({
      store: { ...store, ...over(store) },
      clock,
      random: seededRandom(seed),
      leaseMs: 3000,
      ...options,
    })
    for (const name of [
      'claimed',
      'takenOver',
      'leaseLost',
      'completed',
      'released',
      'storeError',
      'unknown',
    ] as const)
      safe.on(name, () => events.push(name))
    return safe
  }
  return { clock, store, events, safe: make(faults), other: make(() => ({})) }
}

/** A function that fails `times` times, before or after doing its work. */
function failing<Args extends unknown[], Result>(
  real: (...args: Args) => Promise<Result>,
  times: number,
  when: 'before' | 'after',
): (...args: Args) => Promise<Result> {
  let left = times
  return async (...args) => {
    left -= 1
    if (left < 0) return real(...args)
    if (when === 'after') await real(...args)
    throw new Error('connection lost')
  }
}

/** A promise to be resolved by hand. */
function gate() {
  let open: (value?: unknown) => void = () => undefined
  const opened = new Promise<unknown>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

test('a lease is renewed every third of it, however long the work takes', async () => {
  let renewals = 0
  const { safe, clock, store } = setUp((real) => ({
    renew: async (wanted) => {
      renewals += 1
      return real.renew(wanted)
    },
  }))
  const work = gate()
  const running = safe.run(intent, () => work.opened)
  await clock.advance(10_000)
  expect(renewals).toBeGreaterThanOrEqual(9)
  const record = await store.find({ key: 'k', scope: 's' }, clock.now())
  expect(record).toMatchObject({ state: 'running', live: true })
  work.open('done')
  expect(await running).toEqual({ value: 'done', replayed: false })
  expect(clock.pending()).toBe(0)
})

test('many leases go to the store in one renewal', async () => {
  const sizes: number[] = []
  const { safe, clock } = setUp((real) => ({
    renew: async (wanted) => {
      sizes.push(wanted.length)
      return real.renew(wanted)
    },
  }))
  const work = gate()
  const running = Array.from({ length: 20 }, (_, index) =>
    safe.run({ ...intent, key: `k${index}` }, () => work.opened),
  )
  await clock.advance(1100)
  expect(sizes).toEqual([20])
  work.open()
  await Promise.all(running)
})

test.each([
  ['is refused', async () => [false]],
  ['throws until the end', async () => Promise.reject(new Error('down'))],
  ['is never answered', () => new Promise<never>(() => undefined)],
])(
  'when renewal %s, the signal fires before the lease ends, and nothing more is written',
  async (_, renew) => {
    const { safe, other, clock, events } = setUp(() => ({ renew }))
    const work = gate()
    let attempt: LeaseAttempt<MemoryTx> | undefined
    const late = safe.run(intent, async (given) => {
      attempt = given
      await work.opened
      return given.commit((tx) => {
        tx.defer(() => events.push('dead'))
        return 'zombie'
      })
    })
    await clock.advance(2750)
    expect(attempt?.signal.aborted).toBe(true)
    expect(attempt?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(events).toContain('leaseLost')
    await clock.advance(250)
    expect(await other.run(intent, () => 'second')).toEqual({ value: 'second', replayed: false })
    work.open()
    expect(await late).toEqual({ value: 'second', replayed: true })
    expect(events).not.toContain('dead')
  },
)

test('a blocked event loop fires no timer: commit still sees that the lease is over', async () => {
  const { safe, clock } = setUp()
  const monotonic = clock.monotonic
  const blocked = safe.run(intent, ({ commit }) => {
    clock.monotonic = () => monotonic() + 60_000
    return commit(() => 'too late')
  })
  await expect(blocked).rejects.toMatchObject({ code: 'LEASE_LOST' })
})

test('a claim whose answer was lost is recognised as one’s own, and the work runs once', async () => {
  const { safe } = setUp((real) => ({ claim: failing(real.claim, 1, 'after') }))
  let runs = 0
  const answer = await safe.run(intent, ({ attempt }) => {
    runs += 1
    return attempt
  })
  expect({ answer, runs }).toEqual({ answer: { value: 1, replayed: false }, runs: 1 })
})

test('a takeover whose answer was lost is recognised as one’s own', async () => {
  const { safe, store, clock } = setUp((real) => ({ takeOver: failing(real.takeOver, 1, 'after') }))
  await leaveClaim({ store, clock })
  expect(await safe.run(intent, ({ attempt }) => attempt)).toEqual({ value: 2, replayed: false })
})

/** What an earlier attempt of the intent leaves: a claim under `owner` whose lease is over. */
async function leaveClaim(
  { store, clock }: Pick<ReturnType<typeof setUp>, 'store' | 'clock'>,
  owner = 'gone',
) {
  const { fingerprint } = await recordOf(intent, 'any')
  await store.claim({
    identity: { key: 'k', scope: 's' },
    owner,
    fingerprint,
    leaseMs: 10,
    callerNowMs: 0,
  })
  await clock.advance(20)
}

test('a store that cannot be asked refuses, and the work does not run (rule 17)', async () => {
  const { safe } = setUp(() => ({ claim: () => Promise.reject(new Error('secret host')) }))
  let runs = 0
  const refused = safe.run(intent, () => (runs += 1))
  await expect(refused).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503, retryAfterMs: 1000 })
  await expect(refused).rejects.not.toThrow(/secret host/)
  expect(runs).toBe(0)
})

test('running unprotected is a named choice, and stores nothing', async () => {
  const { safe, store, events } = setUp(() => ({ claim: () => Promise.reject(new Error('down')) }), {
    onStoreDown: 'run',
    mode: 'lease',
  })
  expect(await safe.run(intent, () => 'ran')).toEqual({ value: 'ran', replayed: false })
  expect(events).toEqual(['storeError'])
  expect(await store.find({ key: 'k', scope: 's' }, 0)).toBeUndefined()
})

test.each(['before', 'after'] as const)(
  'a completion that fails once %s it is applied is tried again inside the lease',
  async (when) => {
    const { safe, other, clock } = setUp((real) => ({ complete: failing(real.complete, 1, when) }))
    const running = safe.run(intent, () => 'mine')
    await clock.advance(1000)
    expect(await running).toEqual({ value: 'mine', replayed: false })
    expect(await other.run(intent, () => 'again')).toEqual({ value: 'mine', replayed: true })
  },
)

test('while a completion keeps failing the answer is withheld, then 503; the claim is not released', async () => {
  const { safe, other, clock, store } = setUp((real) => ({
    complete: () => Promise.reject(new Error('disk full')),
    renew: failing(real.renew, 1000, 'before'),
  }))
  const refused = expect(safe.run(intent, () => 'mine')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await clock.advance(1000)
  const held = other.run(intent, () => 'other')
  await expect(held).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  expect(await store.find({ key: 'k', scope: 's' }, clock.now())).toMatchObject({
    state: 'running',
    live: true,
  })
  await clock.advance(2100)
  await refused
  expect(await other.run(intent, ({ attempt }) => attempt)).toEqual({ value: 2, replayed: false })
})

test('a release that fails leaves the lease to run out, and the work’s own error reaches the caller', async () => {
  const { safe, other, clock } = setUp(() => ({ release: () => Promise.reject(new Error('down')) }))
  await expect(safe.run(intent, () => Promise.reject(new Error('card refused')))).rejects.toThrow(
    'card refused',
  )
  await expect(other.run(intent, () => 1)).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  await clock.advance(3000)
  expect(await other.run(intent, () => 1)).toMatchObject({ value: 1 })
})

test('an owner that is gone leaves its intent unknown where the route says so, until somebody resolves it', async () => {
  const { safe, store, clock, events } = setUp(undefined, { onOwnerLost: 'unknown' })
  await leaveClaim({ store, clock })
  for (let tries = 0; tries < 2; tries += 1) {
    await expect(safe.run(intent, () => 'never')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  }
  expect(events).toEqual(['unknown', 'unknown'])
  const [stuck] = await safe.list({ states: ['unknown'] })
  if (stuck === undefined) throw new Error('it is not listed')
  expect(await safe.resolve({ ...stuck, generation: stuck.generation - 1 }, { done: false })).toBe(false)
  expect(await safe.resolve(stuck, { done: true, value: 'it worked' })).toBe(true)
  expect(await safe.run(intent, () => 'never')).toEqual({ value: 'it worked', replayed: true })
})

test('the work is told when its time is over, and its claim runs out for the next attempt', async () => {
  const { safe, other, clock } = setUp(undefined, { workTimeoutMs: 5000 })
  let signal: AbortSignal | undefined
  const hung = safe.run(intent, (attempt) => {
    signal = attempt.signal
    return new Promise(() => undefined)
  })
  const refused = expect(hung).rejects.toMatchObject({ code: 'WORK_TIMEOUT' })
  await clock.advance(4999)
  expect(signal?.aborted).toBe(false)
  await clock.advance(1)
  expect(signal?.reason).toMatchObject({ code: 'WORK_TIMEOUT' })
  await clock.advance(3000)
  await refused
  expect(await other.run(intent, ({ attempt }) => attempt)).toMatchObject({ value: 2 })
})

test('a row that somebody else has locked for a moment costs no lease', async () => {
  let locked = 2
  const { safe, clock, events } = setUp((real) => ({
    renew: async (wanted) => {
      locked -= 1
      return locked >= 0 ? wanted.map(() => undefined) : real.renew(wanted)
    },
  }))
  const work = gate()
  const running = safe.run(intent, () => work.opened)
  await clock.advance(4000)
  work.open('done')
  expect(await running).toEqual({ value: 'done', replayed: false })
  expect(events).not.toContain('leaseLost')
})

test('while only completions fail, the caller is kept waiting for one lease and no longer (rule 8)', async () => {
  const { safe, clock } = setUp(() => ({ complete: () => Promise.reject(new Error('disk full')) }))
  const refused = expect(safe.run(intent, () => 'mine')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await clock.advance(3200)
  await refused
})

test('finished work whose lease seems over is still offered to the store, which alone knows (rule 3)', async () => {
  const { safe, other, clock } = setUp(() => ({ renew: () => Promise.reject(new Error('down')) }))
  const work = gate()
  const slow = safe.run(intent, () => work.opened)
  // Past the margin, before the end of the lease: nobody else has taken over.
  await clock.advance(2900)
  work.open('mine')
  expect(await slow).toEqual({ value: 'mine', replayed: false })
  expect(await other.run(intent, () => 'again')).toEqual({ value: 'mine', replayed: true })
})

test('close ends renewals and nothing else: work under way is told in time, and its claim is not released', async () => {
  const { safe, other, clock } = setUp()
  let signal: AbortSignal | undefined
  const work = gate()
  const running = safe.run(intent, (attempt) => {
    signal = attempt.signal
    return work.opened
  })
  await clock.advance(1)
  await safe.close()
  await safe.close()
  await expect(other.run(intent, () => 1)).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  await clock.advance(2800)
  expect(signal?.reason).toMatchObject({ code: 'LEASE_LOST' })
  await clock.advance(300)
  expect(await other.run(intent, () => 'second')).toMatchObject({ value: 'second' })
  work.open('first')
  expect(await running).toEqual({ value: 'second', replayed: true })
})

test('an owner that speaks just before it is given up is believed', async () => {
  let spoken = false
  const { safe, store, clock } = setUp(
    (real) => ({
      abandon: async (verdict) => {
        if (!spoken) {
          spoken = true
          const claim = { identity: verdict.identity, owner: verdict.owner }
          await real.complete({ ...claim, outcome: Uint8Array.from(outcome), retainMs: 60_000 })
        }
        return real.abandon(verdict)
      },
    }),
    { onOwnerLost: 'unknown' },
  )
  const { outcome } = await recordOf(intent, 'it worked')
  await leaveClaim({ store, clock }, 'slow')
  expect(await safe.run(intent, () => 'never')).toEqual({ value: 'it worked', replayed: true })
})

async function recordOf(wanted: typeof intent, value: unknown) {
  const store = memory()
  await retrysafe({ store }).run(wanted, () => value)
  const seen = await store.find({ key: 'k', scope: 's' }, Date.now())
  return { fingerprint: seen?.fingerprint ?? new Uint8Array(), outcome: seen?.outcome ?? new Uint8Array() }
}

test('unprotected work has followers and a time limit like any other', async () => {
  const { safe, clock } = setUp(() => ({ claim: () => Promise.reject(new Error('down')) }), {
    onStoreDown: 'run',
    mode: 'lease',
    workTimeoutMs: 500,
  })
  const hung = expect(safe.run(intent, () => new Promise(() => undefined))).rejects.toMatchObject({
    code: 'WORK_TIMEOUT',
  })
  await clock.advance(1)
  await expect(safe.run(intent, () => 'never')).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  await clock.advance(500)
  await hung
})

test('a waiter that has seen another owner alive never runs unprotected (rule 4)', async () => {
  const { safe, other, clock } = setUp(() => ({ find: () => Promise.reject(new Error('down')) }), {
    onStoreDown: 'run',
    mode: 'lease',
    whileRunning: { waitMs: 10_000 },
  })
  const work = gate()
  const owner = other.run(intent, () => work.opened)
  await clock.advance(1)
  let runs = 0
  const waiter = expect(
    safe.run(intent, () => {
      runs += 1
    }),
  ).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await clock.advance(100)
  await waiter
  expect(runs).toBe(0)
  work.open('done')
  await owner
})
