/** Claiming: exactly one of any number wins, and nobody else changes anything (rules 1 to 4). */
import type { ClaimAnswer, Store } from '../../store.js'
import { equal, holds } from '../check.js'
import { type StoreCase, test } from './case.js'
import {
  abandon,
  claimOf,
  complete,
  hold,
  look,
  minuteMs,
  outcome,
  printA,
  printB,
  standing,
} from './requests.js'
import { fresh, type Room } from './room.js'

/** As many as a double click, a retry storm, and a queue that comes back. */
export const crowds = [5, 50, 500] as const

export const claimCases: readonly StoreCase[] = [
  ...crowds.map((count) =>
    test(1, `exactly one of ${count} concurrent claims is granted to one client`, [], (room) =>
      race([room.store], count),
    ),
  ),
  ...crowds.map((count) =>
    test(1, `exactly one of ${count} concurrent claims is granted among four clients`, [], async (room) =>
      race([room.store, await room.another(), await room.another(), await room.another()], count),
    ),
  ),
  test(1, 'exactly one of 52 concurrent claims is granted among four processes', ['processes'], processes),
  test(1, 'a granted claim is the first of its record, running and alive', [], async ({ store }) => {
    const identity = fresh()
    const held = await hold(store, identity)
    const seen = await look(store, identity)
    const { owner, generation } = held
    const expected = {
      state: 'running',
      owner,
      generation,
      attempts: 1,
      fingerprint: printA,
      outcome: undefined,
    }
    equal('the record', standing(seen), expected as ReturnType<typeof standing>)
    holds('its lease runs, for a minute at most', seen.live && seen.leftMs > 0 && seen.leftMs <= minuteMs)
    holds('the generation is a safe integer', Number.isSafeInteger(generation) && generation > 0)
  }),
  test(1, 'a claim that is refused shows the record as a look-up does', [], async ({ store }) => {
    const identity = fresh()
    await complete(store, identity)
    const answer = await store.claim(claimOf(identity))
    holds('it is refused', !answer.claimed)
    equal('what it shows', answer.seen && standing(answer.seen), standing(await look(store, identity)))
  }),
  test(2, 'a claim sent again under its own token after a lost answer is recognised', [], recognised),
  test(4, 'a refused claim changes nothing about a running record', [], async (room) => {
    const identity = fresh()
    await hold(room.store, identity)
    await unchanged(room, identity)
  }),
  test(4, 'a refused claim changes nothing about a record that is done', [], async (room) => {
    const identity = fresh()
    await complete(room.store, identity)
    await unchanged(room, identity)
  }),
  test(4, 'a refused claim changes nothing about an unknown record', [], async (room) => {
    const identity = fresh()
    await abandon(room.store, identity, room.advance)
    await unchanged(room, identity)
  }),
  test(4, 'a refused claim changes nothing about a released record', [], async (room) => {
    const identity = fresh()
    const { owner } = await hold(room.store, identity)
    await room.store.release({ identity, owner, retainMs: minuteMs })
    await unchanged(room, identity)
  }),
  test(1, 'a look-up of an absent record finds nothing and leaves nothing', [], async ({ store }) => {
    const identity = fresh()
    equal('the look-up', await store.find(identity, 0), undefined)
    equal('the next claim', (await store.claim(claimOf(identity))).claimed, true)
  }),
]

/** Later writes name the owner and the state (rule 3). */
export const ownershipCases: readonly StoreCase[] = [
  test(3, 'nobody but the owner completes, releases or renews', [], async ({ store }) => {
    const identity = fresh()
    await hold(store, identity)
    await writesNothing(store, identity, claimOf(identity).owner)
  }),
  test(3, 'a completed record is completed, released and renewed no more', [], async ({ store }) => {
    const identity = fresh()
    const { owner } = await complete(store, identity)
    await writesNothing(store, identity, owner)
  }),
  test(3, 'a released record is completed, released and renewed no more', [], async ({ store }) => {
    const identity = fresh()
    const { owner } = await hold(store, identity)
    equal('the owner releases', await store.release({ identity, owner, retainMs: minuteMs }), true)
    await writesNothing(store, identity, owner)
  }),
  test(3, 'an unknown record is completed, released and renewed no more', [], async (room) => {
    const identity = fresh()
    const { owner } = await abandon(room.store, identity, room.advance)
    await writesNothing(room.store, identity, owner)
  }),
  test(3, 'a write to an absent record is refused and creates none', [], async ({ store }) => {
    const identity = fresh()
    const owned = { identity, owner: claimOf(identity).owner }
    equal('complete', await store.complete({ ...owned, outcome, retainMs: minuteMs }), false)
    equal('release', await store.release({ ...owned, retainMs: minuteMs }), false)
    equal('renew', await store.renew([{ ...owned, leaseMs: minuteMs }]), [false])
    equal('abandon', await store.abandon({ ...owned, generation: 1, retainMs: minuteMs }), false)
    equal('the record', await store.find(identity, 0), undefined)
  }),
  test(
    2,
    'a done record keeps its owner token, so a lost completion is recognised',
    [],
    async ({ store }) => {
      const identity = fresh()
      const { owner, generation } = await complete(store, identity)
      const expected = { state: 'done', owner, generation, attempts: 1, fingerprint: printA, outcome }
      equal('the record', standing(await look(store, identity)), expected as ReturnType<typeof standing>)
    },
  ),
  ...crowds.map((count) =>
    test(3, `exactly one of ${count} concurrent settlements of one claim is written`, [], (room) =>
      settleRace(room, count),
    ),
  ),
]

async function race<Tx>(stores: readonly Store<Tx>[], count: number): Promise<void> {
  const identity = fresh()
  const requests = Array.from({ length: count }, () => claimOf(identity))
  const answers = await Promise.all(
    requests.map((request, index) => (stores[index % stores.length] as Store<Tx>).claim(request)),
  )
  const winner = requests[oneWinner(answers)]
  const [store] = stores
  if (store !== undefined) equal('the owner on record', (await look(store, identity)).owner, winner?.owner)
  for (const answer of answers) {
    if (!answer.claimed) equal('the owner that a loser is shown', answer.seen?.owner, winner?.owner)
  }
}

/** The index of the only claim that was granted. */
function oneWinner(answers: readonly ClaimAnswer[]): number {
  const claimed = answers.map((answer) => answer.claimed)
  equal('claims granted', claimed.filter(Boolean).length, 1)
  return claimed.indexOf(true)
}

async function processes<Tx extends object>(room: Room<Tx>): Promise<void> {
  const identity = fresh()
  const { all } = await room.processes(4)
  const answers = await all('claim', () => Array.from({ length: 13 }, () => claimOf(identity)))
  oneWinner(answers.flat())
}

async function recognised<Tx extends object>({ store }: Room<Tx>): Promise<void> {
  const identity = fresh()
  const request = claimOf(identity)
  const first = await store.claim(request)
  const again = await store.claim(request)
  holds('the first is granted', first.claimed)
  // A store may say `claimed` again or show the record; either way the caller must see that it owns it.
  if (again.claimed) return equal('the generation', again.generation, first.generation)
  equal('the owner shown', again.seen?.owner, request.owner)
  equal('the generation shown', again.seen?.generation, first.generation)
}

async function unchanged<Tx extends object>(room: Room<Tx>, identity = fresh()): Promise<void> {
  const before = await look(room.store, identity)
  const request = claimOf(identity, { fingerprint: printB, leaseMs: 60 * minuteMs })
  equal('the claim', (await room.store.claim(request)).claimed, false)
  const after = await look(room.store, identity)
  equal('the record', standing(after), standing(before))
  equal('whether it lives', after.live, before.live)
  holds('its end has not moved', after.leftMs <= before.leftMs)
}

async function writesNothing<Tx>(
  store: Store<Tx>,
  identity: ReturnType<typeof fresh>,
  owner: string,
): Promise<void> {
  const before = await look(store, identity)
  equal(
    'complete',
    await store.complete({ identity, owner, outcome: printB, retainMs: 60 * minuteMs }),
    false,
  )
  equal('release', await store.release({ identity, owner, retainMs: 60 * minuteMs }), false)
  equal('renew', await store.renew([{ identity, owner, leaseMs: 60 * minuteMs }]), [false])
  const after = await look(store, identity)
  equal('the record', standing(after), standing(before))
  holds('its end has not moved', after.leftMs <= before.leftMs)
}

/** Completions and releases of one owner, all at once: the first to arrive settles the record, the others are told. */
async function settleRace<Tx extends object>({ store }: Room<Tx>, count: number): Promise<void> {
  const identity = fresh()
  const { owner } = await hold(store, identity)
  const written = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      index % 2 === 0
        ? store.complete({ identity, owner, outcome: Uint8Array.of(index % 256), retainMs: minuteMs })
        : store.release({ identity, owner, retainMs: minuteMs }),
    ),
  )
  equal('settlements written', written.filter(Boolean).length, 1)
  const winner = written.indexOf(true)
  const seen = await look(store, identity)
  equal('the state', seen.state, winner % 2 === 0 ? 'done' : 'released')
  if (winner % 2 === 0) equal('the outcome', seen.outcome, Uint8Array.of(winner % 256))
}
