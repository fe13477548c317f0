/** Sweeping: only what is past retention goes, in batches, by any number of sweepers at once (rule 20). */
import type { Sweeping } from '../../store.js'
import { equal, holds } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { abandon, claimOf, complete, hold, look, minuteMs, outcome, standing } from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'
import { takeOverOf } from './takeover.js'

const needs: readonly Need[] = ['sweeping']

export const sweepingCases: readonly StoreCase[] = [
  test(20, 'what is done and past retention is swept, what stands is not', needs, async (room) => {
    const { store, advance } = room
    await clean(room)
    const past = await complete(store, fresh(), minuteMs)
    const standingOne = await complete(store, fresh(), 10 * minuteMs)
    await advance(2 * minuteMs)
    equal('records swept', await sweepAll(room.sweeping()), 1)
    equal('what was past', await store.find(past.identity, aheadMs), undefined)
    equal('what stands', (await look(store, standingOne.identity)).state, 'done')
  }),
  test(20, 'a released record is swept past its retention, and not before', needs, async (room) => {
    const { store, advance } = room
    await clean(room)
    const held = await hold(store, fresh())
    await store.release({ ...held, retainMs: minuteMs })
    equal('before', await sweepAll(room.sweeping()), 0)
    await advance(minuteMs + 1)
    equal('past', await sweepAll(room.sweeping()), 1)
  }),
  test(20, 'a running record is never swept, lapsed however long ago', needs, async (room) => {
    const held = await hold(room.store, fresh())
    await stays(room, held.identity)
  }),
  test(20, 'an unknown record is never swept', needs, async (room) => {
    const { identity } = await abandon(room.store, fresh(), room.advance, minuteMs)
    await stays(room, identity)
  }),
  test(20, 'a dead record is never swept', [...needs, 'plant'], async (room) => {
    const { identity } = await complete(room.store, fresh(), minuteMs)
    await room.plant(identity, 'dead')
    await stays(room, identity)
  }),
  test(20, 'a released record with steps is never swept', [...needs, 'plant'], async (room) => {
    const held = await hold(room.store, fresh())
    await room.plant(held.identity, 'steps')
    await room.store.release({ ...held, retainMs: minuteMs })
    await stays(room, held.identity)
  }),
  test(20, 'a sweep removes at most as many as it was asked for', needs, async (room) => {
    const sweeping = room.sweeping()
    await clean(room)
    await many(room, 25)
    const batches: number[] = []
    for (let round = 0; round < 4; round += 1) {
      batches.push(await sweeping.sweep({ limit: 10, callerNowMs: aheadMs }))
    }
    equal('the batches', batches, [10, 10, 5, 0])
  }),
  test(20, 'sweepers that run at once remove each record once', needs, async (room) => {
    const others = [await room.another(), await room.another(), await room.another()]
    const sweepers = [room.sweeping(), ...others.map((store) => room.sweeping(store))]
    await clean(room)
    await many(room, 200)
    const removed = await Promise.all(sweepers.map((sweeper) => sweepAll(sweeper)))
    // A record that one of them has locked is passed by: what is left over goes with the next sweep.
    const rest = await sweepAll(room.sweeping())
    equal(
      'records removed',
      removed.reduce((sum, count) => sum + count, rest),
      200,
    )
  }),
  test(
    5,
    'a sweeper whose clock is behind removes nothing that is not past by its clock too',
    needs,
    async (room) => {
      const { store, advance } = room
      await sweepAll(room.sweeping())
      const done = await complete(store, fresh(), minuteMs)
      await advance(2 * minuteMs)
      const { storeNowMs } = await look(store, done.identity)
      await room.sweeping().sweep({ limit: 1000, callerNowMs: storeNowMs - 60 * minuteMs })
      equal('the record', (await look(store, done.identity)).state, 'done')
    },
  ),
  test(20, 'a record that is claimed anew while sweepers run survives', needs, claimedMeanwhile),
  test(5, 'generations grow after the record was removed', needs, async (room) => {
    const { store, advance } = room
    const done = await complete(store, fresh(), minuteMs)
    await advance(2 * minuteMs)
    await sweepAll(room.sweeping())
    equal('it is gone', await store.find(done.identity, aheadMs), undefined)
    const again = await hold(store, done.identity)
    holds('the generation has grown', again.generation > done.generation)
    equal('the attempts, which start anew', again.attempts, 1)
  }),
]

/** Sweeps until nothing is left; answers how many went. */
async function sweepAll(sweeping: Sweeping): Promise<number> {
  let removed = 0
  for (;;) {
    const batch = await sweeping.sweep({ limit: 50, callerNowMs: aheadMs })
    removed += batch
    if (batch === 0) return removed
  }
}

/** Removes what earlier cases have left, so that a count is about the records of this one. */
async function clean<Tx extends object>(room: Room<Tx>): Promise<void> {
  await room.advance(24 * 60 * minuteMs)
  await sweepAll(room.sweeping())
}

async function stays<Tx extends object>(room: Room<Tx>, identity: ReturnType<typeof fresh>): Promise<void> {
  const before = await look(room.store, identity)
  await room.advance(60 * minuteMs)
  await sweepAll(room.sweeping())
  equal('the record', standing(await look(room.store, identity)), standing(before))
}

/** Records that are past their retention. */
async function many<Tx extends object>({ store, advance }: Room<Tx>, count: number) {
  const done = await Promise.all(Array.from({ length: count }, () => complete(store, fresh(), minuteMs)))
  await advance(2 * minuteMs)
  return done
}

/**
 * Claims race with sweepers for records past retention. Whoever is granted the record has it afterwards: a sweeper that deletes
 * what it had selected before, without looking again, takes it away.
 */
async function claimedMeanwhile<Tx extends object>(room: Room<Tx>): Promise<void> {
  const sweepers = [room.sweeping(await room.another()), room.sweeping(await room.another())]
  const { store } = room
  const done = await many(room, 100)
  const sweeps = sweepers.map((sweeper) => sweepAll(sweeper))
  const claims = done.map(async (one) => {
    const request = takeOverOf(one)
    const taken = (await store.takeOver(request)) !== undefined
    const mine = taken || (await store.claim(request)).claimed
    const renewed = mine && (await store.renew([{ ...request, leaseMs: minuteMs }]))[0] === true
    return { request, mine, renewed }
  })
  const [ends] = await Promise.all([Promise.all(claims), Promise.all(sweeps)])
  for (const { request, mine, renewed } of ends) {
    equal('a granted claim is renewed', renewed, mine)
    if (!mine) continue
    const kept = await store.complete({ ...request, outcome, retainMs: 60 * minuteMs })
    equal('a granted claim is completed', kept, true)
  }
  holds(
    'some claims were granted',
    ends.some(({ mine }) => mine),
  )
  equal(
    'a claim of a record that is done',
    (await store.claim(claimOf(ends.find(({ mine }) => mine)?.request.identity ?? fresh()))).claimed,
    false,
  )
}
