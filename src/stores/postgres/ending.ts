/**
 * How an open transaction ends: one flight that saves the outcome and commits, and a reading of what went wrong if it did not.
 *
 * A save that writes nothing must raise, because zero rows would not stop the COMMIT behind it: without that, 256 of 454 keys took
 * effect twice behind an UPDATE of zero rows (POSTGRES.md, rule 3). And it must stand in the transaction of the claim, or the work's own
 * ROLLBACK leaves it to commit alone (rule 21).
 */
import type { OpenTransaction, Save, SaveAnswer } from '../../store.js'
import type { Ledger, Look } from './claim.js'
import { type Call, call, type Failure, type Session } from './driver.js'
import { isDuplicate, serverError, sqlState } from './sql-state.js'

export interface Ending {
  /** The statement that writes the outcome. */
  save(save: Save): Call
  /** Behind it: COMMIT, or the end of a savepoint. */
  readonly close: Call
  readonly undoWork: Call
  /** Undoes everything of ours and ends it. */
  readonly undo: readonly Call[]
  /** Whether `close` is the moment of truth. */
  readonly commits: boolean
  /** What a save of zero rows means: the lease was lost, or the work has undone our claim. */
  readonly zeroRows: 'refused' | 'aborted'
  readonly schema: string
}

/** An ending by COMMIT. */
export function committing(
  { statements, schema }: Ledger,
  save: Ending['save'],
  zeroRows: Ending['zeroRows'],
): Ending {
  return {
    save,
    close: call(statements.commit),
    undoWork: call(statements.rollbackToWork),
    undo: [call(statements.rollback)],
    commits: true,
    zeroRows,
    schema,
  }
}

export function openTransaction<Tx>(session: Session<Tx>, look: Look, ending: Ending): OpenTransaction<Tx> {
  const { tx, used, settle } = session.guard()
  let over = false
  return {
    seen: look.seen,
    granted: look.granted,
    generation: look.generation,
    tx,
    used,
    onLost: session.onLost,
    settle,
    save,
    rollback,
  }

  async function save(wish: Save): Promise<SaveAnswer> {
    await settle()
    if (over) return { kind: 'aborted' }
    const gone = session.lost()
    if (gone !== undefined) {
      // COMMIT was never sent, so the fate of the transaction is known: the server rolls it back.
      leave('destroy')
      return { kind: 'rolledBack', error: gone }
    }
    const calls = [...(wish.undoWork ? [ending.undoWork] : []), ending.save(wish), ending.close]
    const { results, failure } = await session.flight(calls)
    if (failure !== undefined) return refused(failure, calls.length - 1, wish.undoWork)
    leave('release')
    // A COMMIT in a failed transaction is answered with ROLLBACK, and no error (rule 21).
    return ending.commits && results.at(-1)?.tag !== 'COMMIT' ? { kind: 'aborted' } : { kind: 'committed' }
  }

  async function refused(failure: Failure, last: number, workUndone: boolean): Promise<SaveAnswer> {
    const answer = readFailure(failure, last, ending)
    if (answer.kind === 'ambiguous') {
      leave('destroy')
      return answer
    }
    // A failed statement was swallowed: the savepoint before the work still stands, and the outcome may yet be saved alone.
    if (sqlState(failure.error) === '25P02' && !workUndone) return answer
    const alive = await undo()
    // An error that took the connection with it at COMMIT was more than an error: nobody can tell (rule 10).
    return !alive && failure.index === last && ending.commits
      ? { kind: 'ambiguous', error: failure.error }
      : answer
  }

  async function rollback(how?: 'abandon'): Promise<void> {
    if (how === 'abandon') {
      void settle()
      if (!over && ending.commits) leave('destroy')
      // The caller's own transaction cannot be destroyed; its client sends this after the statement that still runs.
      else void undo()
      return
    }
    await settle()
    await undo()
  }

  /** Whether the connection outlived it. */
  async function undo(): Promise<boolean> {
    if (over) return true
    over = true
    const { failure } = await session.flight(ending.undo)
    if (failure === undefined) session.release()
    else session.destroy()
    return failure === undefined
  }

  function leave(how: 'release' | 'destroy'): void {
    over = true
    session[how]()
  }
}

/** Reads a failed save (rule 10): what is certain is said, everything else is ambiguous. */
function readFailure({ index, error }: Failure, last: number, ending: Ending): SaveAnswer {
  const known = serverError(error)
  const code = known?.code ?? ''
  const beforeEnd = index < last
  // Without COMMIT of ours, a lost connection can only mean that the caller's transaction is gone.
  if (!ending.commits && isLost(code)) return { kind: 'rolledBack', error }
  // 57014, a cancelled statement, is certain as long as it was not the COMMIT.
  if (isLost(code) || (!beforeEnd && (code.startsWith('57') || code === '40003')))
    return { kind: 'ambiguous', error }
  // 25P01 and 3B001: the work has ended the transaction, and the savepoint with it.
  if (['25P02', '25P01', '3B001'].includes(code)) return { kind: 'aborted', error }
  if (index !== last - 1) return { kind: 'rolledBack', error }
  if (isDuplicate(error, ending.schema)) return { kind: 'refused' }
  if (code === '22012')
    return ending.zeroRows === 'refused' ? { kind: 'refused' } : { kind: 'aborted', error }
  if (code === '23502' && known?.column === 'owner') return { kind: 'refused' }
  if (code === '23502' && known?.column === 'generation') return { kind: 'aborted', error }
  return { kind: 'rolledBack', error }
}

function isLost(code: string): boolean {
  return code === '' || code.startsWith('08') || code.startsWith('57P')
}
