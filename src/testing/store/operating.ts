/** What an operator sees and decides: every verdict names the generation that was seen (rule 3). */
import type { Operating, RecordState } from '../../store.js'
import { equal, holds, present } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { abandon, complete, type Held, hold, look, minuteMs, outcome, standing } from './requests.js'
import { fresh } from './room.js'
import { takeOverOf } from './takeover.js'

const needs: readonly Need[] = ['operating']
/** More than any earlier case leaves behind. */
const all = 1_000_000

export const operatingCases: readonly StoreCase[] = [
  test(3, 'the list shows records as a look-up does, by state', needs, async (room) => {
    const { store } = room
    const made = {
      running: await hold(store, fresh()),
      done: await complete(store, fresh(), 60 * minuteMs),
      unknown: await abandon(store, fresh(), room.advance, 60 * minuteMs),
    }
    for (const [state, { identity, generation }] of Object.entries(made)) {
      const rows = await room.operating().list({ states: [state as RecordState], limit: all })
      holds(
        'only that state is listed',
        rows.every((row) => row.state === state),
      )
      const row = present(
        `the ${state} record`,
        rows.find((one) => one.identity.key === identity.key),
      )
      const { scope } = row.identity
      equal(
        'the row',
        { scope, generation: row.generation, attempts: row.attempts },
        {
          scope: identity.scope,
          generation,
          attempts: 1,
        },
      )
      equal('whether it lives', row.live, (await look(store, identity)).live)
    }
  }),
  test(
    3,
    'the list is as short as it was asked to be, and holds every state when none is named',
    needs,
    async (room) => {
      const { identity } = await hold(room.store, fresh())
      equal('rows', (await room.operating().list({ limit: 1 })).length, 1)
      equal('rows of no state', (await room.operating().list({ states: [], limit: all })).length, 0)
      const rows = await room.operating().list({ limit: all })
      holds(
        'the record is among them',
        rows.some((row) => row.identity.key === identity.key),
      )
    },
  ),
  test(3, 'records are counted by state', needs, async (room) => {
    const before = await room.operating().count()
    await complete(room.store, fresh(), 60 * minuteMs)
    const { owner, identity } = await hold(room.store, fresh())
    await room.store.release({ identity, owner, retainMs: minuteMs })
    const after = await room.operating().count()
    equal('the counts', after, { ...before, done: before.done + 1, released: before.released + 1 })
  }),
  test(
    3,
    'an unknown record is resolved as done, with the outcome that was found out',
    needs,
    async (room) => {
      const held = await abandon(room.store, fresh(), room.advance)
      equal('another generation', await done(room.operating(), held, held.generation - 1), false)
      equal('as seen', await done(room.operating(), held), true)
      const { state, outcome: kept, live } = await look(room.store, held.identity)
      equal('the record', { state, live }, { state: 'done', live: true })
      equal('its outcome', kept, outcome)
      equal('once more', await done(room.operating(), held), false)
    },
  ),
  test(3, 'an unknown record that is resolved as not done may run again', needs, async (room) => {
    const held = await abandon(room.store, fresh(), room.advance)
    equal('another generation', await released(room.operating(), held, held.generation + 1), false)
    equal('as seen', await released(room.operating(), held), true)
    equal('the state', (await look(room.store, held.identity)).state, 'released')
    const granted = present('the takeover', await room.store.takeOver(takeOverOf(held)))
    holds('the generation has grown', granted.generation > held.generation)
  }),
  test(3, 'a dead record is released by an operator', [...needs, 'plant'], async (room) => {
    const held = await hold(room.store, fresh())
    await room.plant(held.identity, 'dead')
    equal('a takeover before', await room.store.takeOver(takeOverOf(held)), undefined)
    equal('as seen', await released(room.operating(), held), true)
    holds('a takeover after', (await room.store.takeOver(takeOverOf(held))) !== undefined)
  }),
  test(3, 'a lapsed claim is released by an operator, and its late owner is refused', needs, async (room) => {
    const held = await hold(room.store, fresh())
    equal('while it lives', await released(room.operating(), held), false)
    await room.advance(minuteMs + 1)
    equal('past its end', await released(room.operating(), held), true)
    equal('the late owner', await room.store.complete({ ...held, outcome, retainMs: minuteMs }), false)
  }),
  test(3, 'a verdict on what has moved on is not written', needs, async (room) => {
    const held = await hold(room.store, fresh())
    await room.advance(minuteMs + 1)
    await room.store.takeOver(takeOverOf(held))
    await room.advance(minuteMs + 1)
    const before = await look(room.store, held.identity)
    equal('released', await released(room.operating(), held), false)
    equal('done', await done(room.operating(), held), false)
    equal('the record', standing(await look(room.store, held.identity)), standing(before))
  }),
  test(3, 'a record that is done or running is not resolved', needs, async (room) => {
    for (const held of [await complete(room.store, fresh()), await hold(room.store, fresh())]) {
      const before = await look(room.store, held.identity)
      equal('done', await done(room.operating(), held), false)
      equal('released', await released(room.operating(), held), false)
      equal('the record', standing(await look(room.store, held.identity)), standing(before))
    }
  }),
  test(3, 'exactly one of 50 concurrent verdicts is written', needs, async (room) => {
    const held = await abandon(room.store, fresh(), room.advance)
    const verdicts = Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0 ? done(room.operating(), held) : released(room.operating(), held),
    )
    equal('verdicts written', (await Promise.all(verdicts)).filter(Boolean).length, 1)
  }),
]

function done(operating: Operating, held: Held, generation = held.generation): Promise<boolean> {
  return operating.resolveDone({ identity: held.identity, generation, outcome, retainMs: minuteMs })
}

function released(operating: Operating, held: Held, generation = held.generation): Promise<boolean> {
  return operating.resolveReleased({ identity: held.identity, generation, retainMs: minuteMs })
}
