/**
 * The records of a memory store, and how one is seen.
 */
import type { Clock } from '../../clock.js'
import { clockToleranceMs, type Identity, type RecordState, type SeenRecord } from '../../store.js'

/** A record as it is kept. */
export interface MemoryRecord {
  readonly identity: Identity
  state: RecordState
  owner: string
  generation: number
  attempts: number
  fingerprint: Uint8Array
  endsAtMs: number
  outcome: Uint8Array | undefined
}

/** An open transaction's hold on an identity, with what it would write. */
export interface Lock {
  readonly owner: string
  readonly fingerprint: Uint8Array
  /** Its outcome waits for the caller's own commit: from here on a late owner's writes are refused. */
  written: boolean
}

/** What the transactions of the store work on. */
export interface Ledger {
  readonly records: Map<string, MemoryRecord>
  /** Identities that an open transaction holds. */
  readonly locks: Map<string, Lock>
  now(): number
  see(record: MemoryRecord, callerNowMs: number): SeenRecord
  nextGeneration(record: MemoryRecord | undefined): number
}

/** Whether a record may be taken over: released, running past its lease, or done past its retention. */
export function isReplaceable(seen: SeenRecord): boolean {
  return seen.state === 'released' || ((seen.state === 'running' || seen.state === 'done') && !seen.live)
}

export function createLedger(clock: Pick<Clock, 'now'>): Ledger {
  const now = () => clock.now()

  function see(record: MemoryRecord, callerNowMs: number): SeenRecord {
    // A running lease is judged by the store's clock alone; everything else ends only when both clocks say so (rule 5).
    const judge = record.state === 'running' ? now() : Math.min(now(), callerNowMs + clockToleranceMs)
    return {
      state: record.state,
      owner: record.owner,
      generation: record.generation,
      attempts: record.attempts,
      fingerprint: record.fingerprint,
      live: record.endsAtMs > judge,
      leftMs: record.endsAtMs - judge,
      ...(record.outcome && { outcome: record.outcome }),
      hasSteps: false,
      storeNowMs: now(),
    }
  }

  function nextGeneration(record: MemoryRecord | undefined): number {
    return Math.max((record?.generation ?? 0) + 1, Math.floor(now() * 1000))
  }

  return { records: new Map(), locks: new Map(), now, see, nextGeneration }
}
