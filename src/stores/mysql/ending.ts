/**
 * How an open transaction ends: the proof that it is still the claim's, the outcome, and COMMIT, each sent only after the one before it was answered.
 *
 * The proof is a savepoint, set after the claim under a name that only this claim has: a deadlock that rolled everything back, DDL that committed everything, and a
 * COMMIT inside a procedure all take it along, and then RELEASE SAVEPOINT is an error (rules 21 and 36). An outcome that changes no row stops the COMMIT
 * behind it, which has not been sent yet (rule 3).
 */
import { fail } from '../../errors.js'
import type { OpenTransaction, Owned, Save, SaveAnswer, SeenRecord } from '../../store.js'
import type { Ground } from './claim.js'
import type { Session } from './driver.js'
import { explained, isConflict, isConnectionFault, isNoSavepoint, withoutValues } from './errors.js'
import { fitting } from './server.js'
import { commit, rollback, savepointName, settingsAsBefore } from './statements.js'

/** What a claim has learnt. */
export interface Look {
  readonly granted: boolean
  readonly generation: number
  readonly seen: SeenRecord | undefined
}

/** A record that stands is the answer, and nobody holds it; a save finds no savepoint of ours. */
export function standing(seen: SeenRecord): Look {
  return { granted: true, generation: 0, seen }
}

export interface Ending {
  /** The savepoint between the claim and the work. */
  readonly work: string
  finish(save: Save): string
  /** COMMIT, or the end of a savepoint. */
  readonly close: string
  /** Undoes everything of ours and ends it. */
  readonly undo: readonly string[]
  /** Whether `close` is the moment of truth. */
  readonly commits: boolean
  /** What an outcome that finds no row means: the lease was lost, or the work has undone our claim. */
  readonly zeroRows: 'refused' | 'aborted'
  /** Gives the connection back. */
  leave(session: Session<unknown>): void
}

/** An ending by COMMIT. `state`: as what the claim stands in the table. */
export function committing({ statements }: Ground, { identity, owner }: Owned, state: 1 | 4): Ending {
  return {
    work: savepointName('work', owner),
    finish: ({ outcome, retainMs }) => statements.complete(identity, owner, outcome, retainMs, state),
    close: commit,
    undo: [rollback],
    commits: true,
    zeroRows: state === 1 ? 'refused' : 'aborted',
    leave: giveBack,
  }
}

/**
 * Nobody waits for the settings to be put back: whatever comes next on the connection stands behind it. Where that fails, or is not answered in time, the connection goes:
 * without autocommit nothing that others write on it would stay, and MariaDB's connector counts it as taken until it is answered.
 */
function giveBack(session: Session<unknown>): void {
  session.run(settingsAsBefore).catch(session.destroy)
  session.release()
}

/** Ends a transaction in which nothing of the work has run. */
export async function giveUp(session: Session<unknown>): Promise<void> {
  await session.run(rollback).then(
    () => giveBack(session),
    () => session.destroy(),
  )
}

export function openTransaction<Tx>(
  ground: Ground,
  session: Session<Tx>,
  found: Look,
  ending: Ending,
): OpenTransaction<Tx> {
  const { tx, used, settle } = session.guard()
  let over = false
  return {
    ...found,
    tx,
    used,
    onLost: session.onLost,
    settle,
    // The claim's own row holds the identity until COMMIT, also while the work behind its savepoint is undone.
    pin: () => undefined,
    save,
    rollback: rollBack,
  }

  async function save(wish: Save): Promise<SaveAnswer> {
    await settle()
    if (over) return { kind: 'aborted' }
    const gone = session.lost()
    // COMMIT was never sent, so the fate of the transaction is known: the server rolls it back.
    if (gone !== undefined) return broken(gone)
    let closing = false
    try {
      if (wish.undoWork) await session.run(`rollback to savepoint ${ending.work}`)
      await session.run(`release savepoint ${ending.work}`)
      const { affected } = await session.run(fitting(ending.finish(wish), await ground.server(session)))
      if (affected !== 1) {
        await undo()
        return { kind: ending.zeroRows }
      }
      closing = true
      await session.run(ending.close)
    } catch (error) {
      return failed(error, closing)
    }
    over = true
    ending.leave(session)
    return { kind: 'committed' }
  }

  /** Reads a failed save (rule 10): what is certain is said, everything else is ambiguous. */
  async function failed(thrown: unknown, closing: boolean): Promise<SaveAnswer> {
    const error = withoutValues(thrown)
    if (closing && ending.commits && !isConflict(thrown)) {
      over = true
      session.destroy()
      return { kind: 'ambiguous', error }
    }
    if (isConnectionFault(thrown)) return broken(error)
    await undo()
    if (isNoSavepoint(thrown)) return { kind: 'aborted', error }
    return { kind: 'rolledBack', error: explained(thrown, ground.schema) }
  }

  function broken(cause: unknown): SaveAnswer {
    if (ending.commits) {
      over = true
      session.destroy()
    }
    // The caller's own connection is not ours to destroy; where it was only late, this stands in front of the caller's COMMIT.
    else void undo()
    return {
      kind: 'rolledBack',
      error: fail('STORE_UNAVAILABLE', { cause, detail: 'the work was rolled back' }),
    }
  }

  async function rollBack(how?: 'abandon'): Promise<void> {
    const settled = settle()
    // What was in flight on a connection that was destroyed is never answered over mysql2.
    if (over) return
    if (how === 'abandon') {
      // The caller's own transaction cannot be destroyed; its client sends this after the statement that still runs.
      if (!ending.commits) return void undo()
      over = true
      session.destroy()
      return
    }
    await settled
    await undo()
  }

  async function undo(): Promise<void> {
    if (over) return
    over = true
    try {
      for (const text of ending.undo) await session.run(text)
      ending.leave(session)
    } catch {
      session.destroy()
    }
  }
}
