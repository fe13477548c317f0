/** Takeover: a compare-and-swap on exactly what was seen, past its end by the store's clock (rule 5). */
import { randomUUID } from 'node:crypto'
import type { SeenRecord, Store, TakeOverRequest } from '../../store.js'
import { equal, holds, present } from '../check.js'
import { type StoreCase, test } from './case.js'
import {
  abandon,
  claimOf,
  complete,
  type Held,
  hold,
  look,
  minuteMs,
  outcome,
  printB,
  standing,
} from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'

export const takeOverCases: readonly StoreCase[] = [
  test(5, 'a running record is taken over only past its end', [], async ({ store, advance }) => {
    const identity = fresh()
    const held = await hold(store, identity)
    await advance(minuteMs / 2)
    equal('before its end', await store.takeOver(takeOverOf(held)), undefined)
    holds('it lives', (await look(store, identity)).live)
    await advance(minuteMs / 2)
    equal('past its end it lives', (await look(store, identity)).live, false)
    const granted = present('the takeover', await store.takeOver(takeOverOf(held)))
    holds('the generation has grown', granted.generation > held.generation)
    equal('the attempts', granted.attempts, 2)
  }),
  test(5, 'the lease end that the owner stored counts, not the lease of whoever comes', [], async (room) => {
    const identity = fresh()
    const held = await hold(room.store, identity, { leaseMs: minuteMs })
    await room.advance(10_000)
    const brief = { ...takeOverOf(held), leaseMs: 5000 }
    equal('a takeover with a lease of 5 s', await room.store.takeOver(brief), undefined)
    equal(
      'a claim with a lease of 5 s',
      (await room.store.claim(claimOf(identity, { leaseMs: 5000 }))).claimed,
      false,
    )
  }),
  test(5, "the caller's clock neither ends a lease nor prolongs it", [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    equal(
      'a caller that is ahead',
      await store.takeOver({ ...takeOverOf(held), callerNowMs: aheadMs }),
      undefined,
    )
    await advance(minuteMs + 1)
    holds(
      'a caller that is behind',
      (await store.takeOver({ ...takeOverOf(held), callerNowMs: 0 })) !== undefined,
    )
  }),
  test(5, 'a takeover that names another owner or generation is refused', [], async ({ store, advance }) => {
    const identity = fresh()
    const held = await hold(store, identity)
    await advance(minuteMs + 1)
    const before = await look(store, identity)
    const { owner, generation } = held
    const others = [
      { owner: randomUUID(), generation },
      { owner, generation: generation + 1 },
      { owner, generation: generation - 1 },
    ]
    for (const seen of others) {
      equal('the takeover', await store.takeOver({ ...claimOf(identity), seen }), undefined)
    }
    equal('the record', standing(await look(store, identity)), standing(before))
  }),
  test(5, 'a takeover of an absent record is refused and creates none', [], async ({ store }) => {
    const identity = fresh()
    const seen = { owner: randomUUID(), generation: 1 }
    equal('the takeover', await store.takeOver({ ...claimOf(identity), seen }), undefined)
    equal('the record', await store.find(identity, 0), undefined)
  }),
  test(5, 'a released record is taken over at once, by any fingerprint', [], async ({ store }) => {
    const held = await hold(store, fresh())
    await store.release({ ...held, retainMs: minuteMs })
    const request = takeOverOf(held)
    const granted = present('the takeover', await store.takeOver({ ...request, fingerprint: printB }))
    const { owner } = request
    const { generation } = granted
    const expected = {
      state: 'running',
      owner,
      generation,
      attempts: 2,
      fingerprint: printB,
      outcome: undefined,
    }
    equal('the record', standing(await look(store, held.identity)), expected as ReturnType<typeof standing>)
  }),
  test(
    5,
    'an unknown record is never taken over, past its retention neither',
    [],
    async ({ store, advance }) => {
      const held = await abandon(store, fresh(), advance)
      equal('at once', await store.takeOver(takeOverOf(held)), undefined)
      await advance(11 * minuteMs)
      equal('past retention', await store.takeOver(takeOverOf(held)), undefined)
    },
  ),
  test(2, 'a takeover whose answer was lost is recognised by its token', [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    await advance(minuteMs + 1)
    const request = takeOverOf(held)
    const granted = present('the takeover', await store.takeOver(request))
    const { owner, generation, live } = await look(store, held.identity)
    const expected = { owner: request.owner, generation: granted.generation, live: true }
    equal('the record', { owner, generation, live }, expected)
  }),
]

/** What a zombie tries when another attempt owns the record. */
export const lateOwnerCases: readonly StoreCase[] = [
  test(3, 'a late owner cannot overwrite, release or renew what was taken over', [], async (room) => {
    const { store } = room
    const { late, owner } = await overtaken(room)
    const before = await look(store, late.identity)
    await writesNothing(store, late)
    equal('the record', standing(await look(store, late.identity)), standing(before))
    equal('the owner completes', await store.complete({ ...late, owner, outcome, retainMs: minuteMs }), true)
  }),
  test(3, 'a late owner cannot overwrite the outcome of whoever took over', [], async (room) => {
    const { store } = room
    const { late, owner } = await overtaken(room)
    await store.complete({ ...late, owner, outcome, retainMs: minuteMs })
    const before = await look(store, late.identity)
    await writesNothing(store, late)
    equal('the record', standing(await look(store, late.identity)), standing(before))
  }),
  test(3, 'a late release frees nothing for a third', [], async (room) => {
    const { late, owner } = await overtaken(room)
    await room.store.release({ ...late, retainMs: minuteMs })
    const seen = await look(room.store, late.identity)
    equal('the record', { state: seen.state, owner: seen.owner }, { state: 'running', owner })
    equal('the takeover of a third', await room.store.takeOver(takeOverOf({ ...late, ...seen })), undefined)
  }),
  test(5, 'a takeover that goes on after the owner completed is refused', [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    const seen = await look(store, held.identity)
    await store.complete({ ...held, outcome, retainMs: 60 * minuteMs })
    await advance(minuteMs + 1)
    equal('the takeover', await store.takeOver(takeOverOf(held, seen)), undefined)
    equal('the state', (await look(store, held.identity)).state, 'done')
  }),
  test(5, 'an owner past its end that nobody took over still completes', [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    await advance(2 * minuteMs)
    equal('it completes', await store.complete({ ...held, outcome, retainMs: minuteMs }), true)
  }),
]

export const abandonCases: readonly StoreCase[] = [
  test(5, 'a live claim cannot be abandoned', [], async ({ store }) => {
    const held = await hold(store, fresh())
    equal('abandon', await store.abandon({ ...held, retainMs: minuteMs }), false)
    equal('the state', (await look(store, held.identity)).state, 'running')
  }),
  test(3, 'a lapsed claim is abandoned only as it was seen', [], async ({ store, advance }) => {
    const held = await hold(store, fresh())
    await advance(minuteMs + 1)
    const { generation } = held
    const verdict = { ...held, retainMs: minuteMs }
    equal('another owner', await store.abandon({ ...verdict, owner: randomUUID() }), false)
    equal('another generation', await store.abandon({ ...verdict, generation: generation - 1 }), false)
    equal('as seen', await store.abandon(verdict), true)
    const { state, attempts } = await look(store, held.identity)
    equal('the record', { state, attempts }, { state: 'unknown', attempts: 1 })
  }),
  test(3, 'a completed record cannot be abandoned', [], async ({ store, advance }) => {
    const held = await complete(store, fresh(), minuteMs)
    await advance(2 * minuteMs)
    equal('abandon', await store.abandon({ ...held, retainMs: minuteMs }), false)
  }),
]

/** A takeover of what was seen, under a token of its own. */
export function takeOverOf(
  {
    identity,
    owner,
    generation,
  }: Pick<SeenRecord, 'owner' | 'generation'> & { identity: TakeOverRequest['identity'] },
  seen: Pick<SeenRecord, 'owner' | 'generation'> = { owner, generation },
): TakeOverRequest {
  return { ...claimOf(identity), seen: { owner: seen.owner, generation: seen.generation } }
}

async function overtaken<Tx extends object>({ store, advance }: Room<Tx>) {
  const late = await hold(store, fresh())
  await advance(minuteMs + 1)
  const request = takeOverOf(late)
  holds('it is taken over', (await store.takeOver(request)) !== undefined)
  return { late, owner: request.owner }
}

async function writesNothing<Tx>(store: Store<Tx>, late: Held): Promise<void> {
  equal('complete', await store.complete({ ...late, outcome: printB, retainMs: minuteMs }), false)
  equal('release', await store.release({ ...late, retainMs: minuteMs }), false)
  equal('renew', await store.renew([{ ...late, leaseMs: minuteMs }]), [false])
  equal('abandon', await store.abandon({ ...late, retainMs: minuteMs }), false)
}
