/** The last writes of a lease-mode owner, and what becomes of a commit whose answer was lost (rules 3, 10 and 26). */
import { randomUUID } from 'node:crypto'
import { equal, holds, present } from '../check.js'
import { type StoreCase, test } from './case.js'
import { claimOf, complete, hold, look, minuteMs, outcome, standing } from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'
import { takeOverOf } from './takeover.js'
import { beginOf, committed, effect, needs, saved } from './transactions.js'

export const commitCases: readonly StoreCase[] = [
  test(26, "an owner's last writes and its outcome commit together", needs, async (room) => {
    const held = await hold(room.store, fresh())
    const open = await room.transactions().open(held, minuteMs)
    await effect(room, { ...open, tx: open.tx, generation: held.generation }, held.identity)
    equal('effects before the save', (await room.ledger().read(held.identity.key)).length, 0)
    equal('the save', (await saved(open)).kind, 'committed')
    await committed(room, held.identity, held.owner, held.generation)
  }),
  test(26, "an owner's last writes roll back, and the claim stays its own", needs, async (room) => {
    const held = await hold(room.store, fresh())
    const before = await look(room.store, held.identity)
    const open = await room.transactions().open(held, minuteMs)
    await effect(room, { ...open, tx: open.tx, generation: held.generation }, held.identity)
    await open.settle()
    await open.rollback()
    equal('effects', (await room.ledger().read(held.identity.key)).length, 0)
    equal('the record', standing(await look(room.store, held.identity)), standing(before))
    equal('it completes', await room.store.complete({ ...held, outcome, retainMs: minuteMs }), true)
  }),
  test(3, 'a lost lease rolls the last writes of the late owner back', needs, (room) =>
    fenced(room, async ({ store, advance }, held) => {
      await advance(minuteMs + 1)
      holds('it is taken over', (await store.takeOver(takeOverOf(held))) !== undefined)
    }),
  ),
  test(3, 'last writes under a token that was replaced roll back', needs, (room) =>
    fenced(room, async (_, held) => {
      equal('the new name', await room.transactions().renameOwner(held, randomUUID()), 'renamed')
    }),
  ),
  test(3, 'last writes of a record that is done already roll back', needs, (room) =>
    fenced(room, async ({ store }, held) => {
      equal('it completes', await store.complete({ ...held, outcome, retainMs: minuteMs }), true)
    }),
  ),
  test(3, 'last writes of a record that was released roll back', needs, (room) =>
    fenced(room, async ({ store }, held) => {
      equal('it releases', await store.release({ ...held, retainMs: minuteMs }), true)
    }),
  ),
  test(3, 'of a takeover and a commit at the same moment exactly one is written', needs, commitDuel),
]

export const ambiguityCases: readonly StoreCase[] = [
  test(10, 'an owner that renames its claim writes under the new token only', needs, async (room) => {
    const held = await hold(room.store, fresh())
    const renamed = randomUUID()
    equal('the answer', await room.transactions().renameOwner(held, renamed), 'renamed')
    const { state, owner, generation } = await look(room.store, held.identity)
    equal(
      'the record',
      { state, owner, generation },
      { state: 'running', owner: renamed, generation: held.generation },
    )
    equal('the old token', await room.store.complete({ ...held, outcome, retainMs: minuteMs }), false)
    equal(
      'the new one',
      await room.store.complete({ ...held, owner: renamed, outcome, retainMs: minuteMs }),
      true,
    )
  }),
  test(10, 'a claim that is not running under the old token cannot be renamed', needs, async (room) => {
    const transactions = room.transactions()
    const done = await complete(room.store, fresh())
    equal('a done one', await transactions.renameOwner(done, randomUUID()), 'lost')
    equal(
      'an absent one',
      await transactions.renameOwner({ ...done, identity: fresh() }, randomUUID()),
      'lost',
    )
    const held = await hold(room.store, fresh())
    equal(
      "a stranger's",
      await transactions.renameOwner({ ...held, owner: randomUUID() }, randomUUID()),
      'lost',
    )
    const { owner } = await look(room.store, held.identity)
    equal('the owner on record', owner, held.owner)
  }),
  test(10, 'what was committed is read back by its owner token', needs, async (room) => {
    const identity = fresh()
    const request = beginOf(identity)
    const open = await room.transactions().begin(request)
    equal('the save', (await saved(open)).kind, 'committed')
    const back = await room.transactions(await room.another()).readBack(identity, aheadMs)
    const seen = present('the record', back.seen)
    equal(
      'the state',
      { undecided: back.undecided, state: seen.state, owner: seen.owner },
      {
        undecided: false,
        state: 'done',
        owner: request.owner,
      },
    )
    equal('the outcome', seen.outcome, outcome)
  }),
  test(
    10,
    'while the transaction stands its end is undecided, and decided once it is rolled back',
    needs,
    async (room) => {
      const identity = fresh()
      const open = await room.transactions().begin(beginOf(identity))
      const rival = room.transactions(await room.another())
      const during = await rival.readBack(identity, aheadMs)
      equal(
        'during',
        { undecided: during.undecided, seen: during.seen },
        { undecided: true, seen: undefined },
      )
      await open.rollback()
      const after = await rival.readBack(identity, aheadMs)
      equal('after', { undecided: after.undecided, seen: after.seen }, { undecided: false, seen: undefined })
    },
  ),
  test(10, 'reading back takes no lock along: the next attempt is granted', needs, async (room) => {
    const identity = fresh()
    await room.transactions().readBack(identity, aheadMs)
    equal('the claim', (await room.store.claim(claimOf(identity))).claimed, true)
  }),
]

type HeldClaim = Awaited<ReturnType<typeof hold>>

/** Opens the last writes, lets the claim go out of its owner's hands, and saves. */
async function fenced<Tx extends object>(
  room: Room<Tx>,
  lose: (room: Room<Tx>, held: HeldClaim) => Promise<void>,
): Promise<void> {
  const held = await hold(room.store, fresh())
  if (room.oneWriter) await lose(room, held)
  const open = await room.transactions().open(held, minuteMs)
  await effect(room, { ...open, tx: open.tx, generation: held.generation }, held.identity)
  if (!room.oneWriter) await lose(room, held)
  const before = await look(room.store, held.identity)
  const save = await saved(open, { outcome: Uint8Array.of(9) })
  // Under a stricter level the database itself finds that another transaction was first.
  const beaten = save.kind === 'rolledBack' && room.transactions().isConflict(save.error)
  holds(`the save, answered ${save.kind}, was refused`, save.kind === 'refused' || beaten)
  await open.rollback()
  equal('effects', (await room.ledger().read(held.identity.key)).length, 0)
  equal('the record', standing(await look(room.store, held.identity)), standing(before))
}

async function commitDuel<Tx extends object>(room: Room<Tx>): Promise<void> {
  const rival = await room.another()
  for (let round = 0; round < 20; round += 1) {
    const held = await hold(room.store, fresh())
    await room.advance(minuteMs + 1)
    const open = await room.transactions().open(held, minuteMs)
    await effect(room, { ...open, tx: open.tx, generation: held.generation }, held.identity)
    const [save, taken] = await Promise.all([saved(open), rival.takeOver(takeOverOf(held))])
    await open.rollback()
    equal('writes of the two', [save.kind === 'committed', taken !== undefined].filter(Boolean).length, 1)
    const effects = await room.ledger().read(held.identity.key)
    equal('effects', effects.length, save.kind === 'committed' ? 1 : 0)
  }
}
