/**
 * A claim inside the caller's own open transaction, behind a savepoint (rule 7).
 *
 * The claim is written before the work: that takes the file's write lock, where the caller has not taken it yet, and what fails is rolled
 * back to the savepoint. A file that is busy is not waited for, because the caller's transaction would be kept open meanwhile (rule 6): held.
 */
import { fail } from '../../errors.js'
import type { BeginRequest, OpenTransaction, Save, SaveAnswer, SeenRecord } from '../../store.js'
import { type Connection, connectionOf } from './connection.js'
import { explained, isBusy, ofStore } from './faults.js'
import { hold, isHeld } from './gate.js'
import { type Guarded, guardTx, insideOf } from './guard.js'
import { integerIn, latestMs, lookUp, nameOf, stands, wholeMs } from './rows.js'
import { statements } from './statements.js'
import { type Context, gateName } from './turns.js'

export async function openWithin<Tx>(
  context: Context,
  tx: Tx,
  request: BeginRequest,
): Promise<OpenTransaction<Tx>> {
  const inside = insideOf(tx)
  const gate = await gateName(context)
  const connection = connectionOf(inside.handle)
  inside.check()
  if (!connection.inTransaction())
    throw fail('OPTION_INVALID', { detail: 'tx has no open transaction: run "begin immediate" on it first' })
  const claimed = connection.quietly(() => claimWithin(connection, request, isHeld(gate, request.identity)))
  const free = claimed.granted
    ? hold(gate, request.identity, () => connection.inTransaction())
    : () => undefined
  return openTransaction(connection, guardTx<Tx>(inside), { request, claimed, free })
}

interface Claimed {
  readonly seen: SeenRecord | undefined
  readonly granted: boolean
  readonly generation: number
}

/** Leaves nothing behind unless it is granted. */
function claimWithin(connection: Connection, request: BeginRequest, held: boolean): Claimed {
  let seen: SeenRecord | undefined
  connection.exec(statements.savepointWithin)
  try {
    seen = lookUp(connection, request.identity, request.callerNowMs)
    const row = held || stands(seen) ? undefined : writeClaim(connection, request, seen)
    if (row !== undefined) {
      connection.exec(statements.savepointWork)
      return { seen, granted: true, generation: integerIn(row, 'generation') }
    }
  } catch (error) {
    undo(connection)
    // A rival writes, or has written since the caller's transaction first looked: then it can write no more itself.
    if (isBusy(error)) return { seen, granted: false, generation: 0 }
    throw explained(error)
  }
  undo(connection)
  return { seen, granted: false, generation: 0 }
}

function writeClaim(connection: Connection, request: BeginRequest, seen: SeenRecord | undefined) {
  const values = {
    ...nameOf(request.identity),
    owner: request.owner,
    fingerprint: request.fingerprint(),
    lease_ms: wholeMs(request.timeoutMs),
  }
  if (seen === undefined) return connection.rows(statements.claim, values)[0]
  const replaced = { seen_owner: seen.owner, seen_generation: seen.generation }
  const latest = latestMs(request.callerNowMs)
  return connection.rows(statements.takeOver, { ...values, ...replaced, latest })[0]
}

/** Where the caller's transaction is gone, the savepoint is too. */
function undo(connection: Connection): void {
  if (!connection.inTransaction()) return
  connection.exec(statements.rollbackToWithin)
  connection.exec(statements.releaseWithin)
}

interface Parts {
  readonly request: BeginRequest
  readonly claimed: Claimed
  readonly free: () => void
}

function openTransaction<Tx>(
  connection: Connection,
  guarded: Guarded<Tx>,
  { request, claimed, free }: Parts,
): OpenTransaction<Tx> {
  let over = !claimed.granted

  return {
    ...claimed,
    tx: guarded.tx,
    used: guarded.used,
    onLost: () => undefined,
    settle: async () => guarded.close(),
    pin: () => undefined,
    save: async (wish) => save(wish),
    rollback: async () => rollback(),
  }

  function rollback(): void {
    guarded.close()
    if (over) return
    over = true
    undo(connection)
    free()
  }

  function save({ outcome, retainMs, undoWork }: Save): SaveAnswer {
    guarded.close()
    if (over) return { kind: claimed.granted ? 'aborted' : 'refused' }
    const { identity, owner } = request
    const values = { ...nameOf(identity), owner, outcome, retain_ms: wholeMs(retainMs) }
    try {
      if (undoWork) connection.exec(statements.rollbackToWork)
      if (connection.rows(statements.complete, values).length === 0) return { kind: 'aborted' }
      connection.exec(statements.releaseWithin)
    } catch (error) {
      const answer = ofStore(error)
      return answer === error ? { kind: 'aborted', error } : { kind: 'rolledBack', error: answer }
    }
    // Held until the caller's own transaction has ended, which is seen when somebody asks.
    over = true
    return { kind: 'committed' }
  }
}
