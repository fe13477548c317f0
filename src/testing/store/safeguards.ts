/** What ends an attempt from outside, and what is never taken for absent (rules 13, 18 and 21). */
import { fingerprintOfValue } from '../../fingerprint.js'
import { equal, holds, refuses } from '../check.js'
import { planFaults } from '../faults.js'
import { withFaults } from '../faulty-store.js'
import { type StoreCase, test } from './case.js'
import { freshIntent, modes } from './races.js'
import { hold, look, minuteMs, outcome } from './requests.js'
import { aheadMs, fresh } from './room.js'
import { takeOverOf } from './takeover.js'
import { beginOf, effect, needs, saved } from './transactions.js'

export const safeguardCases: readonly StoreCase[] = [
  ...modes.map((mode) =>
    test(
      13,
      `a record that cannot be read is an error in ${mode} mode, and never absent`,
      needs,
      async (room) => {
        const { key, scope, input } = freshIntent()
        const fingerprint = fingerprintOfValue(input).bytes()
        const held = await hold(room.store, { key, scope }, { fingerprint })
        // Whole for the store, and no outcome of any version to a reader.
        await room.store.complete({ ...held, outcome, retainMs: minuteMs })
        const safe = room.safe()
        const never = () => Promise.reject(new Error('the work ran'))
        const call = mode === 'lease' ? safe.run : safe.transaction
        await refuses('the call', 'RECORD_CORRUPT', call({ key, scope, input }, never))
        equal('the state', (await look(room.store, held.identity)).state, 'done')
      },
    ),
  ),
  test(
    18,
    'the signal of an owner whose claim was taken over fires at its next renewal',
    [],
    async (room) => {
      const intent = freshIntent()
      // The takeover has a third of the lease before the first renewal; the limit ends the wait where that is not refused as it must be.
      const leaseMs = 3000
      const safe = room.safe({ leaseMs, workTimeoutMs: 20_000 })
      const fingerprint = fingerprintOfValue(intent.input).bytes()
      const identity = { key: intent.key, scope: intent.scope }
      const call = safe.run(intent, async ({ signal }) => {
        await room.advance(leaseMs)
        const seen = await look(room.store, identity)
        const taken = await room.store.takeOver({ ...takeOverOf({ identity, ...seen }), fingerprint })
        holds('it is taken over', taken !== undefined)
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw signal.reason
      })
      await refuses('the call', 'LEASE_LOST', call)
    },
  ),
  test(18, 'an owner at work keeps its claim alive beyond its lease', [], async (room) => {
    const intent = freshIntent()
    const identity = { key: intent.key, scope: intent.scope }
    const counted = planFaults()
    // Long enough that a renewal may take a second: a busy machine is no fault of the store.
    const leaseMs = 2000
    const safe = room.safe({ leaseMs }, withFaults(room.store, counted))
    const answer = await safe.run(intent, async ({ signal }) => {
      const { owner } = await look(room.store, identity)
      const renewals = async (more: number) => {
        const wanted = counted.calls('renew') + more
        while (!signal.aborted && counted.calls('renew') < wanted) await pause()
      }
      await renewals(1)
      // With the time that passes by itself, the store is past the end of the first lease.
      await room.advance(0.75 * leaseMs)
      // The first of these was sent afterwards, and is answered once the second is sent.
      await renewals(2)
      const seen = await look(room.store, identity)
      equal('the record', { live: seen.live, owner: seen.owner }, { live: true, owner })
      return signal.aborted
    })
    equal('aborted', answer, { value: false, replayed: false })
  }),
  test(
    21,
    'an owner that sends nothing for its time is rolled back by the server',
    [...needs, 'idleTimeout'],
    async (room) => {
      const identity = fresh()
      const rival = room.transactions(await room.another())
      const paused = await room.transactions().begin(beginOf(identity, { timeoutMs: 100 }))
      await effect(room, paused, identity)
      for (let granted = false; !granted; ) {
        const next = await rival.begin(beginOf(identity))
        granted = next.granted
        await next.rollback()
      }
      const { kind } = await saved(paused)
      await paused.rollback()
      equal('the save', kind, 'rolledBack')
      equal('effects', (await room.ledger().read(identity.key)).length, 0)
      equal('the record', await room.store.find(identity, aheadMs), undefined)
    },
  ),
]

/** Between two looks at a condition, in ms: short against any lease, and it leaves the machine to the work. */
const pauseMs = 5

function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs)
  })
}
