/**
 * How an open transaction ends, and a reading of what went wrong if it did not.
 *
 * The save proves that it stands in the transaction of the claim by releasing the savepoint that the claim has set: where the work has ended that
 * transaction, there is none (rule 21).
 */
import type { OpenTransaction, Save, SaveAnswer, SeenRecord } from '../../store.js'
import type { Connection } from './connection.js'
import { isTaken, isUnclear, ofStore } from './faults.js'
import { type Guarded, guardTx } from './guard.js'
import { integerIn } from './rows.js'
import { statements } from './statements.js'
import type { Turn } from './turn-to-write.js'

export interface Ending {
  /** Writes the outcome; false when it is not ours to write. */
  write(save: Save): boolean
  /** What a save that writes nothing means: the lease was lost, or the work has undone our claim. */
  readonly zeroRows: 'refused' | 'aborted'
  /** Lets rivals of this process at the intent again. */
  free(): void
}

/** Rows that were written on the connection since it was opened. */
function changesOn(connection: Connection): number {
  return integerIn(connection.rows(statements.totalChanges)[0], 'total')
}

export function openTransaction<Tx>(
  turn: Turn,
  look: { readonly seen: SeenRecord | undefined; readonly generation: number },
  ending: Ending,
): OpenTransaction<Tx> {
  const { connection } = turn
  const guarded: Guarded<Tx> = guardTx({ handle: connection.handle, check: () => undefined })
  const before = changesOn(connection)
  let refusal: Error | undefined
  let changed = false
  turn.onWait((because) => {
    refusal = because
    guarded.close(because)
    ending.free()
  })
  return {
    ...look,
    granted: true,
    tx: guarded.tx,
    // On a shared connection the work may write past `tx`, through statements that it has prepared before.
    used: () => guarded.used() || changed,
    // A connection to a file cannot be lost.
    onLost: () => undefined,
    settle: async () => settle(),
    // The write lock holds until the end, whatever is rolled back to the savepoint.
    pin: () => undefined,
    save: async (wish) => save(wish),
    rollback: async () => {
      settle()
      end()
    },
  }

  function settle(): void {
    guarded.close()
    if (turn.isOver()) return
    try {
      changed ||= changesOn(connection) !== before
    } catch {
      // An iterator that was left open on a shared connection: the save will say so.
      changed = true
    }
  }

  function end(): void {
    turn.end()
    ending.free()
  }

  function ended(answer: SaveAnswer): SaveAnswer {
    end()
    return answer
  }

  function save(wish: Save): SaveAnswer {
    settle()
    if (refusal !== undefined) return { kind: 'rolledBack', error: refusal }
    if (turn.isOver()) return { kind: 'aborted' }
    try {
      if (wish.undoWork) connection.exec(statements.rollbackToClaim)
      connection.exec(statements.releaseClaim)
    } catch (error) {
      return ended({ kind: isTaken(error) ? 'rolledBack' : 'aborted', error })
    }
    try {
      if (!ending.write(wish)) return ended({ kind: ending.zeroRows })
    } catch (error) {
      return ended({ kind: 'rolledBack', error: ofStore(error) })
    }
    return commit()
  }

  function commit(): SaveAnswer {
    try {
      connection.exec(statements.commit)
    } catch (error) {
      // A deferred constraint of the work fails here, and its error passes untouched (rule 7).
      return ended(
        isUnclear(error) ? { kind: 'ambiguous', error } : { kind: 'rolledBack', error: ofStore(error) },
      )
    }
    return ended({ kind: 'committed' })
  }
}
