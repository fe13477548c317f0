/** What `retrysafe()` promises about endings, on this store: failures, mismatches, waiters, zombies (rules 3, 9, 11, 16 and 26). */
import type { LeaseAttempt, TransactionAttempt } from '../../attempt.js'
import type { Mode } from '../../options.js'
import type { Retrysafe } from '../../retrysafe.js'
import { equal, holds, refuses, rejection } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { freshIntent, modes, oneEffect } from './races.js'
import { minuteMs } from './requests.js'
import type { Room } from './room.js'

const needs: readonly Need[] = ['transactions', 'ledger']

export const endingCases: readonly StoreCase[] = modes.flatMap((mode) => [
  test(9, `a retry in ${mode} mode gets the first answer and does nothing`, needs, async (room) => {
    const intent = freshIntent()
    const value = { text: 'caf\u00e9', list: [1, null, { deep: true }], dropped: undefined }
    const first = await run(room, room.safe(), mode, intent, async () => value)
    const again = await run(
      room,
      room.safe({}, await room.another()),
      mode,
      intent,
      async () => 'a second run',
    )
    equal<unknown>('the first', first, { value: JSON.parse(JSON.stringify(value)), replayed: false })
    equal<unknown>('the retry', again, { value: first.value, replayed: true })
    await oneEffect(room, intent)
  }),
  test(11, `a failure in ${mode} mode frees the key, and its effects are gone`, needs, async (room) => {
    const intent = freshIntent()
    const safe = room.safe()
    const cause = new Error('the work failed')
    const failed = run(room, safe, mode, intent, async () => Promise.reject(cause))
    equal('the error', await rejection('the first', failed), cause)
    equal('effects', (await room.ledger().read(intent.key)).length, 0)
    const again = await run(room, safe, mode, intent, async () => 'done')
    equal('the retry', again, { value: 'done', replayed: false })
    await oneEffect(room, intent)
  }),
  test(11, `a failure past the point of no return is kept in ${mode} mode`, needs, async (room) => {
    const intent = freshIntent()
    const safe = room.safe()
    let runs = 0
    async function work(attempt: { keepFailure(): void }): Promise<never> {
      runs += 1
      attempt.keepFailure()
      throw Object.assign(new Error('declined'), { code: 'CARD_DECLINED' })
    }
    const first = await rejection('the first', run(room, safe, mode, intent, work))
    const again = await rejection('the retry', run(room, safe, mode, intent, work))
    for (const error of [first, again]) {
      const { message, code } = error as Error & { code?: string }
      equal('the error', { message, code }, { message: 'declined', code: 'CARD_DECLINED' })
    }
    equal('runs', runs, 1)
    equal('effects', (await room.ledger().read(intent.key)).length, 0)
  }),
  test(
    16,
    `another input under the same key is refused in ${mode} mode, and never gets the answer`,
    needs,
    async (room) => {
      const intent = freshIntent()
      const safe = room.safe()
      const rival = room.safe({}, await room.another())
      const other = { ...intent, input: { totalCents: 1 } }
      await run(room, safe, mode, intent, async () => 'done')
      for (const instance of [safe, rival]) {
        await refuses(
          'the other',
          'KEY_REUSED',
          run(room, instance, mode, other, async () => 'never'),
        )
      }
      await oneEffect(room, intent)
    },
  ),
  test(16, `another input is refused in ${mode} mode while the first still runs`, needs, async (room) => {
    const intent = freshIntent()
    const safe = room.safe()
    const other = { ...intent, input: { totalCents: 1 } }
    await during(room, safe, mode, intent, async () => {
      await refuses(
        'the other',
        'KEY_REUSED',
        run(room, safe, mode, other, async () => 'never'),
      )
    })
    await oneEffect(room, intent)
  }),
  test(
    6,
    `a duplicate in ${mode} mode is refused while the first runs, here and elsewhere`,
    needs,
    async (room) => {
      const intent = freshIntent()
      const safe = room.safe()
      const rival = room.safe({}, await room.another())
      await during(room, safe, mode, intent, async () => {
        for (const instance of [safe, rival]) {
          await refuses(
            'the duplicate',
            'IN_PROGRESS',
            run(room, instance, mode, intent, async () => 'never'),
          )
        }
      })
      await oneEffect(room, intent)
    },
  ),
  test(
    6,
    `a duplicate in ${mode} mode that waits elsewhere gets the outcome when it comes`,
    needs,
    async (room) => {
      const intent = freshIntent()
      const rival = room.safe({ whileRunning: { waitMs: 20_000 } }, await room.another())
      let waiter: Promise<unknown> = Promise.resolve()
      await during(room, room.safe(), mode, intent, async () => {
        waiter = run(room, rival, mode, intent, async () => 'never')
      })
      equal('the waiter', await waiter, { value: 'done', replayed: true })
      await oneEffect(room, intent)
    },
  ),
  test(6, `a waiter in ${mode} mode runs the work itself when the first fails`, needs, async (room) => {
    const intent = freshIntent()
    const rival = room.safe({ whileRunning: { waitMs: 20_000 } }, await room.another())
    const { held, first, release } = hold(room, room.safe(), mode, intent)
    await held
    const waiter = run(room, rival, mode, intent, async () => 'the second run')
    const cause = new Error('the work failed')
    release(Promise.reject(cause))
    equal('the first', await rejection('the first', first), cause)
    equal('the waiter', await waiter, { value: 'the second run', replayed: false })
    await oneEffect(room, intent)
  }),
  test(
    5,
    `an intent past its retention runs anew in ${mode} mode, under a greater generation`,
    needs,
    async (room) => {
      const intent = freshIntent()
      const safe = room.safe({ retainMs: minuteMs })
      const first = await run(room, safe, mode, intent, async ({ generation }) => generation)
      await room.advance(minuteMs + 1)
      const again = await run(room, safe, mode, intent, async ({ generation }) => generation)
      equal('replayed', again.replayed, false)
      holds('the generation has grown', Number(again.value) > Number(first.value))
      equal('effects', (await room.ledger().read(intent.key)).length, 2)
    },
  ),
  test(12, `an outcome too large to store in ${mode} mode is never worked for twice`, needs, async (room) => {
    const intent = freshIntent()
    const safe = room.safe({ maxReplyBytes: 100 })
    const large = 'x'.repeat(200)
    equal('the first', await run(room, safe, mode, intent, async () => large), {
      value: large,
      replayed: false,
    })
    await refuses(
      'the retry',
      'NOT_REPLAYABLE',
      run(room, safe, mode, intent, async () => 'never'),
    )
    await oneEffect(room, intent)
  }),
])

/** An owner that was only slow (rules 3 and 26, PROOF I5). */
export const zombieCases: readonly StoreCase[] = [
  test(
    26,
    "a zombie's commit is fenced: its writes roll back and it learns the stored outcome",
    needs,
    async (room) => {
      const intent = freshIntent()
      const zombie = hold(room, room.safe({ leaseMs: 20_000 }), 'lease', intent)
      await zombie.held
      await room.advance(20_001)
      const rival = room.safe({}, await room.another())
      const second = await run(room, rival, 'lease', intent, async () => 'the second run')
      equal('the second', second, { value: 'the second run', replayed: false })
      zombie.release('the first run')
      equal('the zombie', await zombie.first, { value: 'the second run', replayed: true })
      await oneEffect(room, intent)
    },
  ),
  test(26, "a zombie's commit is fenced while the second attempt still runs", needs, async (room) => {
    const intent = freshIntent()
    const zombie = hold(room, room.safe({ leaseMs: 20_000 }), 'lease', intent)
    await zombie.held
    await room.advance(20_001)
    const second = hold(room, room.safe({}, await room.another()), 'lease', intent)
    await second.held
    zombie.release('the first run')
    await refuses('the zombie', 'LEASE_LOST', zombie.first)
    equal('effects', (await room.ledger().read(intent.key)).length, 0)
    second.release('the second run')
    equal('the second', await second.first, { value: 'the second run', replayed: false })
    await oneEffect(room, intent)
  }),
  test(4, 'a zombie that fails does not free the key of the second attempt', needs, async (room) => {
    const intent = freshIntent()
    const zombie = hold(room, room.safe({ leaseMs: 20_000 }), 'lease', intent)
    await zombie.held
    await room.advance(20_001)
    const rival = await room.another()
    const second = hold(room, room.safe({}, rival), 'lease', intent)
    await second.held
    zombie.release(Promise.reject(new Error('the zombie failed')))
    await rejection('the zombie', zombie.first)
    const third = room.safe({}, await room.another())
    await refuses(
      'a third',
      'IN_PROGRESS',
      run(room, third, 'lease', intent, async () => 'never'),
    )
    second.release('the second run')
    equal('the second', await second.first, { value: 'the second run', replayed: false })
    await oneEffect(room, intent)
  }),
  test(
    25,
    "an owner that is gone leaves its intent unknown under `onOwnerLost: 'unknown'`",
    needs,
    async (room) => {
      const intent = freshIntent()
      const lost = hold(room, room.safe({ leaseMs: 20_000 }), 'lease', intent)
      await lost.held
      await room.advance(20_001)
      const rival = room.safe({ onOwnerLost: 'unknown' }, await room.another())
      for (let retry = 0; retry < 2; retry += 1) {
        await refuses(
          'the retry',
          'OUTCOME_UNKNOWN',
          run(room, rival, 'lease', intent, async () => 'never'),
        )
      }
      lost.release('late')
      await rejection('the late owner', lost.first)
      equal('effects', (await room.ledger().read(intent.key)).length, 0)
    },
  ),
  test(26, 'after a commit the intent is done, whatever the work throws', needs, async (room) => {
    const intent = freshIntent()
    const safe = room.safe()
    const first = await safe.run(intent, async ({ commit, generation }) => {
      await commit((tx) => write(room, tx, intent, generation, 'done'))
      throw new Error('after the commit')
    })
    equal('the first', first as unknown, { value: 'done', replayed: false })
    equal('the retry', await run(room, safe, 'lease', intent, async () => 'never'), {
      value: 'done',
      replayed: true,
    })
    await oneEffect(room, intent)
  }),
]

type IntentOf = ReturnType<typeof freshIntent>
type AnyAttempt<Tx> = TransactionAttempt<Tx> | LeaseAttempt<Tx>

async function write<Tx extends object, Value>(
  room: Room<Tx>,
  tx: Tx,
  { key, input }: IntentOf,
  generation: number,
  value: Value,
): Promise<Value> {
  await room.ledger().write(tx, { key, payload: JSON.stringify(input), generation })
  return value
}

/** Runs work that writes one effect: before its own part in transaction mode, with its value in lease mode. */
function run<Tx extends object, Value>(
  room: Room<Tx>,
  safe: Retrysafe<Tx>,
  mode: Mode,
  intent: IntentOf,
  work: (attempt: AnyAttempt<Tx>) => Promise<Value>,
) {
  if (mode === 'transaction') {
    return safe.transaction(intent, async (attempt) => {
      await write(room, attempt.tx, intent, attempt.generation, undefined)
      return work(attempt)
    })
  }
  return safe.run(intent, async (attempt) => {
    const value = await work(attempt)
    return attempt.commit((tx) => write(room, tx, intent, attempt.generation, value))
  })
}

/** Starts work that stays under way until it is told how to end. */
function hold<Tx extends object>(room: Room<Tx>, safe: Retrysafe<Tx>, mode: Mode, intent: IntentOf) {
  let release: (end: unknown) => void = () => undefined
  let entered: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    entered = resolve
  })
  const end = new Promise<unknown>((resolve) => {
    release = resolve
  })
  const first = run(room, safe, mode, intent, async () => {
    entered()
    return end
  })
  // Whoever asks for it sees how it ends; a case that fails before must not leave a rejection behind that nobody handles.
  first.catch(() => undefined)
  return { held: Promise.race([held, first.then(() => undefined)]), first, release }
}

/** Does something while the first attempt is under way, then lets it end as `done`. */
async function during<Tx extends object>(
  room: Room<Tx>,
  safe: Retrysafe<Tx>,
  mode: Mode,
  intent: IntentOf,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const { held, first, release } = hold(room, safe, mode, intent)
  await held
  try {
    await meanwhile()
  } finally {
    release('done')
  }
  equal('the first', await first, { value: 'done', replayed: false })
}
