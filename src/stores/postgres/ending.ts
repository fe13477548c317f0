/**
 * How an open transaction ends: one flight that saves the outcome and commits, and a reading of what went wrong if it did not.
 *
 * A save that writes nothing must raise, because zero rows would not stop the COMMIT behind it: without that, 256 of 454 keys took
 * effect twice behind an UPDATE of zero rows (rule 3). And it must stand in the transaction of the claim, or the work's own
 * ROLLBACK leaves it to commit alone (rule 21).
 */
import type { OpenTransaction, Owned, Save, SaveAnswer } from '../../store.js'
import type { Ledger, Look } from './claim.js'
import {
  type Call,
  call,
  type Driver,
  type Failure,
  type Flown,
  type Result,
  type Session,
} from './driver.js'
import { withoutValues } from './plain-error.js'
import { isDuplicate, serverError, sqlState } from './sql-state.js'

/** Undoes the work without a savepoint: by a new transaction that has the claim's lock again. */
export interface BeginAnew {
  /** Raises unless the transaction of the claim is still the one that stands. */
  readonly prove: Call
  /** Holds the identity for the session, so that no rival gets it behind the ROLLBACK. */
  readonly pin: Call
  readonly unpin: Call
  /** ROLLBACK and the first flight of the claim. */
  readonly calls: readonly Call[]
  /** The statement that writes the outcome there; undefined when a rival was there in between. */
  read(results: readonly Result[]): ((save: Save) => Call) | undefined
}

export interface Ending {
  /** The statement that writes the outcome. */
  save(save: Save): Call
  /** Behind it: COMMIT, or the end of a savepoint. */
  readonly close: Call
  /** Rolls back to the savepoint before the work, or what to do where there is none. */
  readonly undoWork: Call | (() => BeginAnew)
  /** Undoes everything of ours and ends it. */
  readonly undo: readonly Call[]
  /** Whether `close` is the moment of truth. */
  readonly commits: boolean
  /** Asks for the outcome behind COMMIT, where nobody tells how that was answered. */
  readonly stands?: Call | undefined
  /** What a save of zero rows means: the lease was lost, or the work has undone our claim. */
  readonly zeroRows: 'refused' | 'aborted'
  readonly schema: string
}

/** An ending by COMMIT. */
export function committing<Tx>(
  { statements, schema, driver }: Ledger & { readonly driver: Driver<Tx> },
  { identity: { key, scope }, owner }: Owned,
  save: Ending['save'],
  zeroRows: Ending['zeroRows'],
): Ending {
  return {
    stands: driver.tellsEnd ? undefined : call(statements.stands, key, scope, owner),
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
  const { tx, used, settle, between } = session.guard()
  const { undoWork } = ending
  let made: BeginAnew | undefined
  let over = false
  let pinning: Promise<Flown> | undefined
  let pinned = false
  return {
    seen: look.seen,
    granted: look.granted,
    generation: look.generation,
    tx,
    used,
    onLost: session.onLost,
    settle,
    pin,
    save,
    rollback,
  }

  /** Sent now, in its turn: once a statement of the work has failed, the transaction takes no lock any more. */
  function pin(): void {
    const anew = beginAnew()
    if (anew !== undefined) pinning ??= between(() => session.flight([anew.pin]))
  }

  /** Made when it is asked for, which is seldom. */
  function beginAnew(): BeginAnew | undefined {
    if (typeof undoWork === 'function') made ??= undoWork()
    return made
  }

  async function settled(): Promise<void> {
    await settle()
    if (pinning !== undefined) pinned = (await pinning).failure === undefined
    pinning = undefined
  }

  async function save(wish: Save): Promise<SaveAnswer> {
    await settled()
    if (over) return { kind: 'aborted' }
    const gone = session.lost()
    // COMMIT was never sent, so the fate of the transaction is known: the server rolls it back.
    if (gone !== undefined) return broken(gone)
    if (!wish.undoWork) return close([ending.save(wish)], 0, false)
    const anew = beginAnew()
    if (anew !== undefined) return saveAnew(anew, wish)
    return close([undoWork as Call, ending.save(wish)], 1, true)
  }

  /** Saves the outcome alone, in a new transaction that no rival could get in front of. */
  async function saveAnew(anew: BeginAnew, wish: Save): Promise<SaveAnswer> {
    const proof = await session.flight(pinned ? [anew.prove] : [anew.prove, anew.pin])
    if (proof.failure === undefined) pinned = true
    // Aborted by a failed statement, it takes no lock; but then it is still the claim's, which no work can leave and come back to.
    else if (sqlState(proof.failure.error) !== '25P02') {
      const lost = isLost(sqlState(proof.failure.error))
      if (lost) return broken(proof.failure.error)
      await undo()
      return { kind: 'aborted', error: proof.failure.error }
    }
    const { results, failure } = await session.flight(anew.calls)
    if (failure !== undefined) return broken(failure.error)
    const saveStatement = anew.read(results)
    if (saveStatement !== undefined) return close([saveStatement(wish)], 0, true)
    await undo()
    return { kind: 'refused' }
  }

  /** Sends the save with COMMIT behind it. The lock of the session goes in between: the transaction's own still holds until COMMIT. */
  async function close(calls: readonly Call[], saveAt: number, workUndone: boolean): Promise<SaveAnswer> {
    const all = [...calls, ...unpin(), ending.close]
    const { results, failure } = await session.flight(all)
    if (failure !== undefined) return refused(failure, { saveAt, closeAt: all.length - 1 }, workUndone)
    const proof = ending.stands && (await session.flight([ending.stands]))
    leave('release')
    if (proof?.failure !== undefined) return { kind: 'ambiguous', error: proof.failure.error }
    // A COMMIT in a failed transaction is answered with ROLLBACK, and no error (rule 21).
    const rolledBack =
      proof === undefined ? results.at(-1)?.tag !== 'COMMIT' : proof.results[0]?.rows.length === 0
    return ending.commits && rolledBack ? { kind: 'aborted' } : { kind: 'committed' }
  }

  function unpin(): readonly Call[] {
    return pinned && made !== undefined ? [made.unpin] : []
  }

  function broken(error: unknown): SaveAnswer {
    leave('destroy')
    return { kind: 'rolledBack', error }
  }

  async function refused(failure: Failure, at: Places, workUndone: boolean): Promise<SaveAnswer> {
    const answer = readFailure(failure, at, ending)
    if (answer.kind === 'ambiguous') {
      leave('destroy')
      return answer
    }
    // A failed statement was swallowed: the outcome may yet be saved alone.
    if (sqlState(failure.error) === '25P02' && !workUndone) return answer
    if (failure.index > at.saveAt) pinned = false
    const alive = await undo()
    // An error that took the connection with it at COMMIT was more than an error: nobody can tell (rule 10).
    return !alive && failure.index === at.closeAt && ending.commits
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
    const answered = settled()
    // What was in flight over a tool is answered when it is: its connection cannot be destroyed.
    if (over) return
    await answered
    await undo()
  }

  /** Whether the connection outlived it. */
  async function undo(): Promise<boolean> {
    if (over) return true
    over = true
    const { failure } = await session.flight([...ending.undo, ...unpin()])
    if (failure === undefined) session.release()
    else session.destroy()
    return failure === undefined
  }

  function leave(how: 'release' | 'destroy'): void {
    over = true
    session[how]()
  }
}

/** Where in a flight the outcome is written, and where the transaction ends. */
interface Places {
  readonly saveAt: number
  readonly closeAt: number
}

/** Reads a failed save (rule 10): what is certain is said, everything else is ambiguous. */
function readFailure(failure: Failure, at: Places, ending: Ending): SaveAnswer {
  const { index } = failure
  // What COMMIT fails for is the work's own constraint, which passes untouched (rule 7).
  const error = index === at.saveAt ? withoutValues(failure.error) : failure.error
  const known = serverError(error)
  const code = known?.code ?? ''
  const beforeEnd = index < at.closeAt
  // Without COMMIT of ours, a lost connection can only mean that the caller's transaction is gone.
  if (!ending.commits && isLost(code)) return { kind: 'rolledBack', error }
  // 57014, a cancelled statement, is certain as long as it was not the COMMIT.
  if (isLost(code) || (!beforeEnd && (code.startsWith('57') || code === '40003')))
    return { kind: 'ambiguous', error }
  // 25P01 and 3B001: the work has ended the transaction, and the savepoint with it.
  if (['25P02', '25P01', '3B001'].includes(code)) return { kind: 'aborted', error }
  // Also at COMMIT, where a database may check its keys only then.
  if (isDuplicate(error, ending.schema)) return { kind: 'refused' }
  if (index !== at.saveAt) return { kind: 'rolledBack', error }
  if (code === '22012')
    return ending.zeroRows === 'refused' ? { kind: 'refused' } : { kind: 'aborted', error }
  if (code === '23502' && known?.column === 'owner') return { kind: 'refused' }
  if (code === '23502' && known?.column === 'generation') return { kind: 'aborted', error }
  return { kind: 'rolledBack', error }
}

function isLost(code: string): boolean {
  return code === '' || code.startsWith('08') || code.startsWith('57P')
}
