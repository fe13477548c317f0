/** Undoing the work: the outcome is saved alone, and no rival gets the claim behind the rollback (rule 11). */
import { equal, holds } from '../check.js'
import { type StoreCase, test } from './case.js'
import { look, outcome } from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'
import { beginOf, effect, needs, saved } from './transactions.js'

interface How {
  /** Said at the begin that it may come to this. */
  readonly mayUndoWork: boolean
  /** The point of no return is passed in the middle of the work. */
  readonly pins: boolean
}

const ways: readonly (readonly [string, How])[] = [
  ['announced', { mayUndoWork: true, pins: false }],
  ['not announced', { mayUndoWork: false, pins: false }],
  ['past the point of no return', { mayUndoWork: true, pins: true }],
  ['past a point of no return that was not announced', { mayUndoWork: false, pins: true }],
]

/** How often a race is run: one round alone would meet one order of arrival. */
const rounds = 20

export const undoCases: readonly StoreCase[] = ways.flatMap(([what, how]) => [
  test(11, `a save that undoes the work stores the outcome alone, ${what}`, needs, async (room) => {
    const identity = fresh()
    const request = beginOf(identity, { mayUndoWork: how.mayUndoWork })
    const open = await room.transactions().begin(request)
    await effect(room, open, identity)
    if (how.pins) open.pin()
    await effect(room, open, identity)
    equal('the save', (await saved(open, { undoWork: true })).kind, 'committed')
    equal('effects', (await room.ledger().read(identity.key)).length, 0)
    const { state, owner, outcome: kept } = await look(room.store, identity)
    equal('the record', { state, owner }, { state: 'done', owner: request.owner })
    equal('the outcome', kept, outcome)
    await unlocked(room, identity)
  }),
  test(11, `while the work is undone, ${what}, no rival gets in front`, needs, async (room) => {
    const rival = room.transactions(await room.another())
    for (let round = 0; round < rounds; round += 1) {
      const identity = fresh()
      const open = await room.transactions().begin(beginOf(identity, { mayUndoWork: how.mayUndoWork }))
      await effect(room, open, identity)
      if (how.pins) open.pin()
      let over = false
      const saving = saved(open, { undoWork: true }).finally(() => {
        over = true
      })
      while (!over) {
        const next = await rival.begin(beginOf(identity))
        holds('a rival that is granted sees the outcome', !next.granted || next.seen?.state === 'done')
        await next.rollback()
      }
      equal('the save', (await saving).kind, 'committed')
    }
  }),
  test(11, `a rollback, ${what}, leaves nothing and frees the claim`, needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity, { mayUndoWork: how.mayUndoWork }))
    await effect(room, open, identity)
    if (how.pins) open.pin()
    await open.settle()
    await open.rollback()
    equal('the record', await room.store.find(identity, aheadMs), undefined)
    equal('effects', (await room.ledger().read(identity.key)).length, 0)
    await unlocked(room, identity)
  }),
])

/** Nothing holds the identity any more, from wherever it is asked. */
async function unlocked<Tx extends object>(
  room: Room<Tx>,
  identity: ReturnType<typeof fresh>,
): Promise<void> {
  for (const store of [room.store, await room.another()]) {
    const next = await room.transactions(store).begin(beginOf(identity))
    await next.rollback()
    equal('granted', next.granted, true)
  }
}
