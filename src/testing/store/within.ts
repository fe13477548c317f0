/** A claim inside a transaction that the user has opened: true when the user commits, and it leaves the transaction usable (rule 7). */
import type { Identity } from '../../store.js'
import { equal, holds, refuses } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { claimOf, complete, hold, look, minuteMs, outcome } from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'
import { beginOf, committed, effect, saved } from './transactions.js'

const needs: readonly Need[] = ['transactions', 'ledger', 'own']

export const withinCases: readonly StoreCase[] = [
  test(7, "a claim inside the user's transaction is true once the user commits", needs, async (room) => {
    const identity = fresh()
    const user = await room.own()
    const request = beginOf(identity)
    const open = await room.transactions().within(user.tx, request)
    equal('granted', open.granted, true)
    await effect(room, open, identity)
    equal('the save', (await saved(open)).kind, 'committed')
    equal('the record before', await room.store.find(identity, aheadMs), undefined)
    equal('effects before', (await room.ledger().read(identity.key)).length, 0)
    await user.commit()
    await committed(room, identity, request.owner, open.generation)
  }),
  test(7, "the user's rollback takes the claim and its effects back", needs, async (room) => {
    const identity = fresh()
    const user = await room.own()
    const open = await room.transactions().within(user.tx, beginOf(identity))
    await effect(room, open, identity)
    equal('the save', (await saved(open)).kind, 'committed')
    await user.rollback()
    equal('effects', (await room.ledger().read(identity.key)).length, 0)
    equal('the next claim', (await room.store.claim(claimOf(identity))).claimed, true)
  }),
  test(7, "a duplicate inside the user's transaction leaves it usable", needs, async (room) => {
    const { identity } = await complete(room.store, fresh())
    await usableAfter(room, identity, { state: 'done', granted: undefined })
  }),
  test(7, "a claim that is held leaves the user's transaction usable", needs, async (room) => {
    const identity = fresh()
    const rival = await room.another()
    const holder = await room.transactions(rival).begin(beginOf(identity))
    await usableAfter(room, identity, { state: undefined, granted: false, holder })
    await holder.rollback()
  }),
  test(7, "a running record leaves the user's transaction usable", needs, async (room) => {
    const { identity } = await hold(room.store, fresh())
    await usableAfter(room, identity, { state: 'running', granted: undefined })
  }),
  test(7, 'a rollback inside takes back its own effects and none of the user', needs, async (room) => {
    const [mine, theirs] = [fresh(), fresh()]
    const user = await room.own()
    await effect(room, { tx: user.tx, generation: 1 }, theirs)
    const open = await room.transactions().within(user.tx, beginOf(mine))
    await effect(room, open, mine)
    await open.settle()
    await open.rollback()
    await user.commit()
    equal('effects of the claim', (await room.ledger().read(mine.key)).length, 0)
    equal('effects of the user', (await room.ledger().read(theirs.key)).length, 1)
    equal('the record', await room.store.find(mine, aheadMs), undefined)
  }),
  test(11, "a save alone undoes the work's effects and none of the user", needs, async (room) => {
    const [mine, theirs] = [fresh(), fresh()]
    const user = await room.own()
    await effect(room, { tx: user.tx, generation: 1 }, theirs)
    const open = await room.transactions().within(user.tx, beginOf(mine))
    await effect(room, open, mine)
    equal('the save', (await saved(open, { undoWork: true })).kind, 'committed')
    await user.commit()
    equal('effects of the claim', (await room.ledger().read(mine.key)).length, 0)
    equal('effects of the user', (await room.ledger().read(theirs.key)).length, 1)
    equal('the outcome', (await look(room.store, mine)).outcome, outcome)
  }),
  test(7, "two claims one after the other in the user's transaction commit with it", needs, async (room) => {
    const user = await room.own()
    const identities = [fresh(), fresh()]
    for (const identity of identities) {
      const open = await room.transactions().within(user.tx, beginOf(identity))
      await effect(room, open, identity)
      equal('the save', (await saved(open)).kind, 'committed')
    }
    await user.commit()
    for (const { key } of identities) equal('effects', (await room.ledger().read(key)).length, 1)
  }),
  test(
    7,
    "a claim in the user's transaction is held against others until the user's end",
    needs,
    async (room) => {
      const identity = fresh()
      const user = await room.own()
      const open = await room.transactions().within(user.tx, beginOf(identity))
      await effect(room, open, identity)
      equal('the save', (await saved(open)).kind, 'committed')
      const rival = await room.another()
      const second = await room.transactions(rival).begin(beginOf(identity))
      holds('the second is neither granted nor shown a record', !second.granted && second.seen === undefined)
      await second.rollback()
      equal('a lease-mode claim', (await rival.claim(claimOf(identity))).claimed, false)
      await user.commit()
      equal('the state', (await look(rival, identity)).state, 'done')
    },
  ),
  test(21, "the claim's own `tx` dies with the attempt, the user's does not", needs, async (room) => {
    const [mine, theirs] = [fresh(), fresh()]
    const user = await room.own()
    const open = await room.transactions().within(user.tx, beginOf(mine))
    equal('the save', (await saved(open)).kind, 'committed')
    await refuses('a write after the end', 'ATTEMPT_SETTLED', effect(room, open, mine))
    await effect(room, { tx: user.tx, generation: 1 }, theirs)
    await user.commit()
    equal('effects of the user', (await room.ledger().read(theirs.key)).length, 1)
  }),
  test(5, "a lapsed claim is taken over inside the user's transaction", needs, async (room) => {
    const late = await hold(room.store, fresh())
    await room.advance(minuteMs + 1)
    const user = await room.own()
    const request = beginOf(late.identity)
    const open = await room.transactions().within(user.tx, request)
    holds('the generation has grown', open.granted && open.generation > late.generation)
    await effect(room, open, late.identity)
    equal('the save', (await saved(open)).kind, 'committed')
    await user.commit()
    await committed(room, late.identity, request.owner, open.generation)
    equal('the late owner', await room.store.complete({ ...late, outcome, retainMs: minuteMs }), false)
  }),
]

/** Tries the claim, which is not to be had, and then writes and commits in the same transaction. */
async function usableAfter<Tx extends object>(
  room: Room<Tx>,
  identity: Identity,
  expected: {
    readonly state: string | undefined
    readonly granted: false | undefined
    readonly holder?: { rollback(): Promise<void> }
  },
): Promise<void> {
  const theirs = fresh()
  const user = await room.own()
  const writesFirst = expected.holder === undefined || !room.oneWriter
  if (writesFirst) await effect(room, { tx: user.tx, generation: 1 }, theirs)
  const open = await room.transactions().within(user.tx, beginOf(identity))
  equal('the state that it saw', open.seen?.state, expected.state)
  if (expected.granted !== undefined) equal('granted', open.granted, expected.granted)
  await open.rollback()
  // Where the holder keeps every other writer out, the user writes when it has ended.
  if (room.oneWriter) await expected.holder?.rollback()
  await effect(room, { tx: user.tx, generation: 2 }, theirs)
  await user.commit()
  equal('effects of the user', (await room.ledger().read(theirs.key)).length, writesFirst ? 2 : 1)
}
