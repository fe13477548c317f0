/** Every moment at which a record changes what it means, against a model, with a clock that the test moves (rules 5 and 20). */
import fc from 'fast-check'
import { memory } from 'retrysafe/memory'
import { type MovableClock, movableClock } from 'retrysafe/testing'
import { expect, test } from 'vitest'

const identity = { key: 'k', scope: 's' }
const fingerprint = Uint8Array.of(1)
const outcome = Uint8Array.of(2)

/** What there should be: a record, and when its lease or its retention ends. */
interface Expected {
  readonly state: 'running' | 'released' | 'done' | 'unknown'
  readonly owner: string
  readonly endsAt: number
}

const ms = fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 86_400_000 }))
const step = fc.oneof(
  fc.record({ do: fc.constant('advance' as const), ms }),
  // To the very moment of an end, and to the one before it.
  fc.record({ do: fc.constant('advanceToEnd' as const), short: fc.integer({ min: 0, max: 1 }) }),
  fc.record({ do: fc.constantFrom('claim' as const, 'renew' as const), leaseMs: ms }),
  fc.record({
    do: fc.constantFrom('complete' as const, 'release' as const, 'abandon' as const),
    retainMs: ms,
  }),
  fc.record({ do: fc.constant('sweep' as const) }),
)
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

function room() {
  const clock: MovableClock = movableClock({ nowMs: 1_700_000_000_000 })
  const store = memory({ clock })
  let expected: Expected | undefined
  let owner = 'nobody'
  let drawn = 0

  const now = () => clock.monotonic()
  const isLive = () => expected !== undefined && now() < expected.endsAt
  /** Whether a new claim may replace what is there. */
  const isFree = () =>
    expected === undefined || expected.state === 'released' || (!isLive() && expected.state !== 'unknown')

  async function claim(leaseMs: number): Promise<void> {
    drawn += 1
    const request = { identity, owner: `owner-${drawn}`, fingerprint, leaseMs, callerNowMs: clock.now() }
    const answer = await store.claim(request)
    const seen = answer.claimed ? undefined : answer.seen
    const granted =
      answer.claimed || (seen !== undefined && (await store.takeOver({ ...request, seen })) !== undefined)
    expect(granted).toBe(isFree())
    if (!granted) return
    owner = request.owner
    expected = { state: 'running', owner, endsAt: now() + leaseMs }
  }

  /** Whether a write of the last owner is to be taken: its claim stands, however late it is. */
  const isOurs = () => expected?.state === 'running' && expected.owner === owner

  async function run(one: Step): Promise<void> {
    const ours = isOurs()
    switch (one.do) {
      case 'advance':
        return clock.advance(one.ms)
      case 'advanceToEnd':
        return clock.advance(Math.max(0, (expected?.endsAt ?? 0) - now() - one.short))
      case 'claim':
        return claim(one.leaseMs)
      case 'renew':
        expect(await store.renew([{ identity, owner, leaseMs: one.leaseMs }])).toEqual([ours])
        if (ours) expected = { state: 'running', owner, endsAt: now() + one.leaseMs }
        return
      case 'complete':
      case 'release':
        expect(await store[one.do]({ identity, owner, outcome, retainMs: one.retainMs })).toBe(ours)
        if (ours)
          expected = {
            state: one.do === 'complete' ? 'done' : 'released',
            owner,
            endsAt: now() + one.retainMs,
          }
        return
      case 'abandon': {
        const seen = await store.find(identity, clock.now())
        const stuck = expected?.state === 'running' && !isLive()
        const verdict = { identity, owner, generation: seen?.generation ?? 0, retainMs: one.retainMs }
        expect(await store.abandon(verdict)).toBe(stuck)
        if (stuck) expected = { state: 'unknown', owner, endsAt: now() + one.retainMs }
        return
      }
      case 'sweep': {
        const past = expected !== undefined && !isLive() && ['done', 'released'].includes(expected.state)
        expect(await store.sweeping.sweep({ limit: 10, callerNowMs: clock.now() })).toBe(past ? 1 : 0)
        if (past) expected = undefined
        return
      }
      default:
        one satisfies never
    }
  }

  async function compare(): Promise<void> {
    const seen = await store.find(identity, clock.now())
    const shown = seen && { state: seen.state, owner: seen.owner, live: seen.live, leftMs: seen.leftMs }
    expect(shown).toEqual(
      expected && {
        state: expected.state,
        owner: expected.owner,
        live: isLive(),
        leftMs: expected.endsAt - now(),
      },
    )
  }

  return { run, compare }
}

test('a lease and a retention end at their own moment and at no other, whatever happens in between', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { run, compare } = room()
      for (const one of steps) {
        await run(one)
        await compare()
      }
    }),
    { numRuns: 300 },
  )
})
