/** What a claim sends and what its answers mean; shared by the ways a transaction is opened. */
import type { BeginRequest, Identity, Owned, Save, SeenRecord } from '../../store.js'
import { type Call, call, type Failure, type Result, wire } from './driver.js'
import { latestMs, lockNumber, wholeMs } from './identity.js'
import { flagAt, integerAt, seenRecord, textAt } from './rows.js'
import { isConflict, isDuplicate } from './sql-state.js'
import type { Statements } from './statements.js'

/** The statements, and the schema that our own constraint is known by. */
export interface Ledger {
  readonly statements: Statements
  readonly schema: string
}

/** What the flight of a claim has learnt. */
export interface Look {
  readonly granted: boolean
  /** The transaction's own start in µs. */
  readonly began: string
  readonly generation: number
  readonly seen: SeenRecord | undefined
}

/** Reads the answers to a lock statement and the look-up behind it. */
export function lookOf(lock: Result | undefined, found: Result | undefined): Look {
  const locked = lock?.rows[0]
  const row = found?.rows[0]
  const seen = row === undefined ? undefined : seenRecord(row)
  return {
    granted: flagAt(locked, 0),
    began: textAt(locked, 1),
    generation: Math.max(integerAt(locked, 2), (seen?.generation ?? 0) + 1),
    seen,
  }
}

export function lookUp({ statements }: Ledger, identity: Identity, callerNowMs: number): Call {
  return call(statements.lookUp, identity.key, identity.scope, latestMs(callerNowMs))
}

/** Whether a claim may replace what was seen; the statement that does so judges again. */
export function mayReplace(seen: SeenRecord): boolean {
  return seen.state === 'released' || (!seen.live && (seen.state === 'running' || seen.state === 'done'))
}

/** Writes the claim before the work: a new row, or a takeover of exactly the dead one that was seen. */
export function writeClaim(context: Ledger, request: BeginRequest, seen: SeenRecord | undefined): Call {
  const { statements, schema } = context
  const { key, scope } = request.identity
  const fingerprint = wire(request.fingerprint())
  const leaseMs = wholeMs(request.timeoutMs)
  if (seen === undefined)
    return call(statements.insertRunning, key, scope, request.owner, fingerprint, leaseMs)
  return call(
    statements.takeOver,
    key,
    scope,
    seen.owner,
    String(seen.generation),
    request.owner,
    fingerprint,
    leaseMs,
    latestMs(request.callerNowMs),
    lockNumber(schema, request.identity),
  )
}

/** The save of a row that stands: raises when it is not ours any more, or when this is not the claim's transaction. */
export function finishing(context: Ledger, { identity, owner }: Owned, began: string): (save: Save) => Call {
  return ({ outcome, retainMs }) =>
    call(
      context.statements.finish,
      identity.key,
      identity.scope,
      owner,
      wire(outcome),
      wholeMs(retainMs),
      began,
    )
}

/** The generation that the claim has written; no row means that a rival holds the record. */
export function claimed(look: Look, written: Result | undefined): Look {
  const row = written?.rows[0]
  return row === undefined ? { ...look, granted: false } : { ...look, generation: integerAt(row, 0) }
}

/** Whether a claim failed because a rival has committed: our own key, or a snapshot too old to see it. */
export function lostTo({ schema }: Ledger, { index, error }: Failure): boolean {
  return index === 0 && (isDuplicate(error, schema) || isConflict(error))
}
