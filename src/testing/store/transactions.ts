/** Transactions: claim, effect and outcome are true together or not at all (rules 1, 7, 11 and 21). */
import { randomUUID } from 'node:crypto'
import type { BeginRequest, Identity, OpenTransaction, Save } from '../../store.js'
import { equal, holds, refuses } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { abandon, claimOf, complete, hold, look, minuteMs, outcome, printA, standing } from './requests.js'
import { aheadMs, fresh, type Room } from './room.js'

export const needs: readonly Need[] = ['transactions', 'ledger']

export const transactionCases: readonly StoreCase[] = [
  test(11, 'claim, effect and outcome commit together', needs, async (room) => {
    const identity = fresh()
    const request = beginOf(identity)
    const open = await room.transactions().begin(request)
    equal('what it saw', { seen: open.seen, granted: open.granted }, { seen: undefined, granted: true })
    await effect(room, open, identity)
    equal('effects before the save', (await room.ledger().read(identity.key)).length, 0)
    equal('the record before the save', await room.store.find(identity, aheadMs), undefined)
    equal('the save', (await saved(open)).kind, 'committed')
    await committed(room, identity, request.owner, open.generation)
  }),
  test(11, 'claim, effect and outcome roll back together', needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity))
    await effect(room, open, identity)
    await open.settle()
    await open.rollback()
    await nothing(room, identity)
    await freeAgain(room, identity)
  }),
  test(21, '`tx` dies with the attempt: a use after it throws and nothing is sent', needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity))
    await open.settle()
    await refuses('a write after the end', 'ATTEMPT_SETTLED', effect(room, open, identity))
    equal('the save', (await saved(open)).kind, 'committed')
    await refuses('a write after the commit', 'ATTEMPT_SETTLED', effect(room, open, identity))
    equal('effects', (await room.ledger().read(identity.key)).length, 0)
  }),
  test(24, 'a transaction knows whether its work has used `tx`', needs, async (room) => {
    const [unused, used] = [await room.transactions().begin(beginOf(fresh())), fresh()]
    equal('before any use', unused.used(), false)
    await unused.rollback()
    const open = await room.transactions().begin(beginOf(used))
    await effect(room, open, used)
    equal('after a use', open.used(), true)
    await open.rollback()
  }),
  test(21, 'a rollback may be called any number of times, after a save too', needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity))
    await effect(room, open, identity)
    equal('the save', (await saved(open)).kind, 'committed')
    await open.rollback()
    await open.rollback('abandon')
    equal('effects', (await room.ledger().read(identity.key)).length, 1)
    const other = await room.transactions().begin(beginOf(fresh()))
    await other.rollback()
    await other.rollback()
  }),
  test(21, 'an abandoned transaction leaves nothing', needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity))
    await effect(room, open, identity)
    void open.settle()
    await open.rollback('abandon')
    await freeAgain(room, identity)
    await nothing(room, identity, 'found once the lock was free')
  }),
  test(5, 'retention of a saved outcome counts from the save', needs, async (room) => {
    const identity = fresh()
    const open = await room.transactions().begin(beginOf(identity))
    equal('the save', (await saved(open, { retainMs: minuteMs })).kind, 'committed')
    await room.advance(minuteMs / 2)
    holds('it lives', (await look(room.store, identity)).live)
    await room.advance(minuteMs / 2 + 1)
    equal('it lives', (await look(room.store, identity)).live, false)
  }),
  test(
    5,
    'an outcome past retention is replaced by the save, under a greater generation',
    needs,
    async (room) => {
      const done = await complete(room.store, fresh(), minuteMs)
      await room.advance(2 * minuteMs)
      const request = beginOf(done.identity)
      const open = await room.transactions().begin(request)
      equal('what it saw', { state: open.seen?.state, live: open.seen?.live }, { state: 'done', live: false })
      holds('the generation has grown', open.generation > done.generation)
      await effect(room, open, done.identity)
      equal('the save', (await saved(open)).kind, 'committed')
      await committed(room, done.identity, request.owner, open.generation)
    },
  ),
]

/** The look-up speaks before the lock does (rule 1). */
export const lookUpCases: readonly StoreCase[] = [
  test(1, 'an open transaction is held against others, who neither wait nor see it', needs, async (room) => {
    const identity = fresh()
    const rival = await room.another()
    const first = await room.transactions().begin(beginOf(identity))
    await effect(room, first, identity)
    const second = await room.transactions(rival).begin(beginOf(identity))
    equal('the second', { seen: second.seen, granted: second.granted }, { seen: undefined, granted: false })
    await second.rollback()
    equal('the save', (await saved(first)).kind, 'committed')
    equal('effects', (await room.ledger().read(identity.key)).length, 1)
  }),
  test(
    6,
    'a lease-mode claim does not wait for an open transaction, and is not granted',
    needs,
    async (room) => {
      const identity = fresh()
      const open = await room.transactions().begin(beginOf(identity))
      const rival = await room.another()
      equal('the claim', (await rival.claim(claimOf(identity))).claimed, false)
      equal('the save', (await saved(open)).kind, 'committed')
      equal('the state', (await look(rival, identity)).state, 'done')
    },
  ),
  test(1, 'what is done is seen whatever the lock says', needs, async (room) => {
    const { identity, generation } = await complete(room.store, fresh())
    const rival = await room.another()
    const first = await room.transactions().begin(beginOf(identity))
    const second = await room.transactions(rival).begin(beginOf(identity))
    for (const open of [first, second]) {
      equal(
        'what it saw',
        { state: open.seen?.state, generation: open.seen?.generation },
        { state: 'done', generation },
      )
      equal('its outcome', open.seen?.outcome, outcome)
    }
    await first.rollback()
    await second.rollback()
  }),
  test(1, 'a look-up under the lock sees what the last holder committed', needs, async (room) => {
    const rival = await room.another()
    for (let round = 0; round < 20; round += 1) {
      const identity = fresh()
      const open = await room.transactions().begin(beginOf(identity))
      const save = saved(open)
      // Begun while the commit is under way: refused, or granted after it. A look-up older than the lock would be granted blind.
      const second = await room.transactions(rival).begin(beginOf(identity))
      equal('the save', (await save).kind, 'committed')
      holds('granted means seen', !second.granted || second.seen?.state === 'done')
      await second.rollback()
    }
  }),
]

/** A record that stands is not overwritten by a save; one that may be replaced is, exactly as it was seen (rule 5). */
export const replacementCases: readonly StoreCase[] = [
  test(
    3,
    'a save over a record that is done is not written, and takes its effects along',
    needs,
    async (room) => {
      const { identity } = await complete(room.store, fresh())
      await refusedSave(room, identity)
    },
  ),
  test(3, 'a save over a running record is not written, and takes its effects along', needs, async (room) => {
    const { identity } = await hold(room.store, fresh())
    await refusedSave(room, identity)
  }),
  test(
    3,
    'a save over an unknown record is not written, and takes its effects along',
    needs,
    async (room) => {
      const { identity } = await abandon(room.store, fresh(), room.advance)
      await refusedSave(room, identity)
    },
  ),
  test(5, 'a lapsed claim is replaced by the save, and its late owner is refused', needs, async (room) => {
    const late = await hold(room.store, fresh())
    await room.advance(minuteMs + 1)
    const request = beginOf(late.identity)
    const open = await room.transactions().begin(request)
    await effect(room, open, late.identity)
    equal('the save', (await saved(open)).kind, 'committed')
    await committed(room, late.identity, request.owner, open.generation)
    equal(
      'the late owner',
      await room.store.complete({ ...late, outcome: printA, retainMs: minuteMs }),
      false,
    )
  }),
  test(
    5,
    'a claim that its owner renewed or completed meanwhile is not replaced by the save',
    needs,
    async (room) => {
      const rival = await room.another()
      for (let round = 0; round < 20; round += 1) {
        const held = await hold(room.store, fresh())
        await room.advance(minuteMs + 1)
        const open = await room.transactions().begin(beginOf(held.identity))
        await effect(room, open, held.identity)
        const moving =
          round % 2 === 0
            ? rival.renew([{ ...held, leaseMs: minuteMs }]).then(([answer]) => answer)
            : rival.complete({ ...held, outcome: printA, retainMs: minuteMs })
        const [save, moved] = await Promise.all([saved(open), moving])
        await open.rollback()
        const written = [save.kind === 'committed', moved === true]
        equal('writes of the two', written.filter(Boolean).length, 1)
        equal('effects', (await room.ledger().read(held.identity.key)).length, written[0] ? 1 : 0)
      }
    },
  ),
]

export function beginOf(identity: Identity, more: Partial<BeginRequest> = {}): BeginRequest {
  return {
    identity,
    owner: randomUUID(),
    fingerprint: () => printA,
    timeoutMs: minuteMs,
    callerNowMs: aheadMs,
    ...more,
  }
}

/** Writes one effect through the transaction. */
export async function effect<Tx extends object>(
  room: Room<Tx>,
  { tx, generation }: Pick<OpenTransaction<Tx>, 'tx' | 'generation'>,
  { key }: Identity,
): Promise<void> {
  await room.ledger().write(tx, { key, payload: 'effect', generation })
}

export async function saved<Tx>(open: OpenTransaction<Tx>, more: Partial<Save> = {}) {
  await open.settle()
  return open.save({ fingerprint: printA, outcome, retainMs: 10 * minuteMs, undoWork: false, ...more })
}

/** One effect, and the outcome. */
export async function committed<Tx extends object>(
  room: Room<Tx>,
  identity: Identity,
  owner: string,
  generation: number,
): Promise<void> {
  const effects = await room.ledger().read(identity.key)
  equal('effects', [...effects], [{ key: identity.key, payload: 'effect', generation }])
  const seen = await look(room.store, identity)
  const { state, fingerprint, outcome: kept } = standing(seen)
  const expected = { state: 'done', owner, generation, fingerprint: printA, outcome } as const
  equal(
    'the record',
    { state, owner: seen.owner, generation: seen.generation, fingerprint, outcome: kept },
    expected as never,
  )
}

async function nothing<Tx extends object>(
  room: Room<Tx>,
  identity: Identity,
  when = 'afterwards',
): Promise<void> {
  equal(`effects ${when}`, (await room.ledger().read(identity.key)).length, 0)
  equal(`the record ${when}`, await room.store.find(identity, aheadMs), undefined)
}

/** The lock of what was rolled back is free; where a connection had to be destroyed, as soon as the server has noticed. */
async function freeAgain<Tx extends object>(room: Room<Tx>, identity: Identity): Promise<void> {
  for (;;) {
    const open = await room.transactions().begin(beginOf(identity))
    await open.rollback()
    if (open.granted) return equal('the record', open.seen, undefined)
  }
}

async function refusedSave<Tx extends object>(room: Room<Tx>, identity: Identity): Promise<void> {
  const before = await look(room.store, identity)
  const open = await room.transactions().begin(beginOf(identity))
  await effect(room, open, identity)
  const { kind } = await saved(open)
  await open.rollback()
  holds(`the save, answered ${kind}, is not committed`, kind !== 'committed')
  equal('effects', (await room.ledger().read(identity.key)).length, 0)
  equal('the record', standing(await look(room.store, identity)), standing(before))
}
