/**
 * Whether all that the work writes is in the transaction of its attempt: a write through the root client (the pool, `db`, `prisma`) is not, and no
 * concurrent test can show it, because in one process attempts share one run of the work.
 */
import type { Effects } from './endings.js'
import type { Faults } from './faults.js'

/** What {@link expectThroughTx} is given. */
export interface ExpectThroughTx {
  /** The plan that the handler's store follows: the store is `withFaults(store, faults)`. */
  readonly faults: Faults
  /**
   * Sends the intent in transaction mode, with one key that was not used before. It is called twice, first into a failure, so what it answers or
   * throws is not looked at.
   */
  attempt(): Promise<unknown> | unknown
  /** How many effects there are. */
  effects: Effects
}

/**
 * Runs `attempt` and rolls its transaction back in the place of COMMIT: what is there then was written past `tx`. Runs it once more and lets it
 * through, which must add an effect, or `effects` counts something else. Costs two attempts; takes effect once.
 *
 * @throws An error that says what it found.
 *
 * @example
 * ```ts
 * const faults = planFaults()
 * const safe = retrysafe({ store: withFaults(postgres(pool), faults), mode: 'transaction' })
 * await expectThroughTx({
 *   faults,
 *   attempt: () => safe.transaction({ scope: 's', key: 'k1' }, ({ tx }) => tx.query('insert into orders default values')),
 *   effects: async () => Number((await pool.query('select count(*) from orders')).rows[0].count),
 * })
 * ```
 */
export async function expectThroughTx({ faults, attempt, effects }: ExpectThroughTx): Promise<void> {
  const before = await effects()
  const fired = faults.fired()
  faults.next('save', 'failBefore')
  await settled(attempt)
  if (faults.fired() === fired) {
    faults.heal()
    throw new Error(
      'The attempt did not come to its end: send an intent in transaction mode with a key that is not used yet, on the store that follows `faults`',
    )
  }
  const past = (await effects()) - before
  if (past !== 0)
    throw new Error(
      `${past} of the effects stand although the transaction was rolled back: the work wrote past tx, through the client that it came from, say`,
    )
  const ending = await settled(attempt)
  if ((await effects()) > before) return
  throw new Error('The attempt that was let through added no effect: `effects` counts something else', {
    cause: ending,
  })
}

/** What it threw, if it did. */
async function settled(attempt: ExpectThroughTx['attempt']): Promise<unknown> {
  try {
    await attempt()
    return undefined
  } catch (error) {
    return error
  }
}
