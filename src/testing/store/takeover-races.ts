/** Races at the end of a lease: whoever comes first wins, and everybody is told (rules 3 and 5). */
import type { Store } from '../../store.js'
import { equal, holds } from '../check.js'
import { type StoreCase, test } from './case.js'
import { crowds } from './claims.js'
import { hold, look, minuteMs, outcome } from './requests.js'
import { fresh, type Room } from './room.js'
import { takeOverOf } from './takeover.js'

/** How often a race between two is run: one round alone would meet one order of arrival. */
const rounds = 20

export const takeOverRaceCases: readonly StoreCase[] = [
  ...crowds.map((count) =>
    test(
      5,
      `exactly one of ${count} concurrent takeovers of one lapsed claim is granted`,
      [],
      async (room) => {
        const stores = [room.store, await room.another(), await room.another()]
        await takeOverRace(room, stores, count)
      },
    ),
  ),
  test(
    5,
    'exactly one of 52 concurrent takeovers is granted among four processes',
    ['processes'],
    async (room) => {
      const held = await lapsed(room)
      const { all } = await room.processes(4)
      const answers = await all('takeOver', () => Array.from({ length: 13 }, () => takeOverOf(held)))
      equal('takeovers granted', answers.flat().filter((granted) => granted !== undefined).length, 1)
    },
  ),
  test(5, 'of a takeover and a completion at the same moment exactly one is written', [], (room) =>
    duel(room, (store, held) => store.complete({ ...held, outcome, retainMs: minuteMs })),
  ),
  test(
    5,
    'of a takeover and a release at the same moment the owner is never the loser of its own takeover',
    [],
    (room) => releaseDuel(room),
  ),
  test(5, 'of a takeover and a renewal at the same moment exactly one is written', [], (room) =>
    duel(room, async (store, held) => (await store.renew([{ ...held, leaseMs: minuteMs }]))[0] === true),
  ),
  test(5, 'of a takeover and an abandonment at the same moment exactly one is written', [], (room) =>
    duel(room, (store, held) => store.abandon({ ...held, retainMs: minuteMs })),
  ),
]

async function lapsed<Tx extends object>({ store, advance }: Room<Tx>) {
  const held = await hold(store, fresh())
  await advance(minuteMs + 1)
  return held
}

async function takeOverRace<Tx extends object>(room: Room<Tx>, stores: readonly Store<Tx>[], count: number) {
  const held = await lapsed(room)
  const requests = Array.from({ length: count }, () => takeOverOf(held))
  const answers = await Promise.all(
    requests.map((request, index) => (stores[index % stores.length] as Store<Tx>).takeOver(request)),
  )
  const granted = answers.map((answer) => answer !== undefined)
  equal('takeovers granted', granted.filter(Boolean).length, 1)
  const winner = granted.indexOf(true)
  const { owner, generation, attempts } = await look(room.store, held.identity)
  equal(
    'the record',
    { owner, generation, attempts },
    { owner: requests[winner]?.owner ?? '', ...winnerOf(answers[winner]) },
  )
}

function winnerOf(granted: { generation: number; attempts: number } | undefined) {
  return { generation: granted?.generation ?? 0, attempts: granted?.attempts ?? 0 }
}

/**
 * A takeover and one write of the owner, over two clients. Exactly one is written; a takeover that finds the row locked may be refused while the
 * write is refused too only if a third had it, which there is not.
 */
async function duel<Tx extends object>(
  room: Room<Tx>,
  write: (store: Store<Tx>, held: Awaited<ReturnType<typeof lapsed>>) => Promise<boolean>,
): Promise<void> {
  const rival = await room.another()
  for (let round = 0; round < rounds; round += 1) {
    const held = await lapsed(room)
    const request = takeOverOf(held)
    // The takeover goes first in every other round, so that both orders of arrival are met.
    const contest = [() => rival.takeOver(request), () => write(room.store, held)] as const
    const [first, second] = round % 2 === 0 ? contest : ([contest[1], contest[0]] as const)
    const answers = await Promise.all([first(), second()])
    const [taken, written] = round % 2 === 0 ? answers : [answers[1], answers[0]]
    equal(
      'writes of the two',
      [taken !== undefined && taken !== false, written === true].filter(Boolean).length,
      1,
    )
    const { owner } = await look(room.store, held.identity)
    equal('the owner on record', owner, written === true ? held.owner : request.owner)
  }
}

/** A release and a takeover may both be written, in that order only: then the record is the new owner's. */
async function releaseDuel<Tx extends object>(room: Room<Tx>): Promise<void> {
  const rival = await room.another()
  for (let round = 0; round < rounds; round += 1) {
    const held = await lapsed(room)
    const request = takeOverOf(held)
    const [released, taken] = await Promise.all([
      room.store.release({ ...held, retainMs: minuteMs }),
      rival.takeOver(request),
    ])
    holds('one of them at least is written', released || taken !== undefined)
    const { owner, state } = await look(room.store, held.identity)
    const expected =
      taken === undefined
        ? { owner: held.owner, state: 'released' }
        : { owner: request.owner, state: 'running' }
    equal('the record', { owner, state }, expected as { owner: string; state: typeof state })
  }
}
