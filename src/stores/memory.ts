/**
 * The reference store: the shortest correct one, in the memory of one process.
 *
 * Every function runs to its end without yielding, which is all the atomicity there is to have here. What another store does must be
 * explicable by what this one does. It survives nothing: for tests, for trying things out, and for tools that live as long as their records.
 */
import { type Clock, systemClock } from '../clock.js'
import { fail } from '../errors.js'
import type {
  ClaimAnswer,
  ClaimRequest,
  Completion,
  Granted,
  Identity,
  Operating,
  Owned,
  RecordState,
  RecordSummary,
  Release,
  Renewal,
  SeenRecord,
  Store,
  Sweeping,
  TakeOverRequest,
  Verdict,
} from '../store.js'
import { recordName } from '../store.js'
import { createLedger, isReplaceable, type Ledger, type MemoryRecord } from './memory/ledger.js'
import { createTransactions, type MemoryTransactions, type MemoryTx } from './memory/transactions.js'

export type { MemoryTx } from './memory/transactions.js'

/** Options of {@link memory}. */
export interface MemoryOptions {
  /** The store's own clock; a test passes one that it moves. Default: the machine's. */
  readonly clock?: Pick<Clock, 'now'>
}

/** A {@link Store} in memory, with every ability but migrations. */
export interface MemoryStore extends Store<MemoryTx> {
  readonly transactions: MemoryTransactions
  readonly sweeping: Sweeping
  readonly operating: Operating
}

/**
 * A store in the memory of this process. It is lost with the process and shared with no other.
 *
 * @example
 * ```ts
 * const safe = retrysafe({ store: memory(), mode: 'lease' })
 * ```
 */
export function memory(options: MemoryOptions = {}): MemoryStore {
  const clock = options.clock ?? systemClock
  if (typeof clock.now !== 'function')
    throw fail('OPTION_INVALID', { detail: 'clock must have a function now()' })
  const ledger = createLedger(clock)
  const { records, locks } = ledger

  async function claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const name = recordName(request.identity)
    const record = records.get(name)
    if (record !== undefined) return { claimed: false, seen: ledger.see(record, request.callerNowMs) }
    const lock = locks.get(name)
    if (lock !== undefined) return { claimed: false, seen: seenOfLock(lock, ledger.now()) }
    const generation = ledger.nextGeneration(undefined)
    records.set(name, {
      identity: request.identity,
      state: 'running',
      owner: request.owner,
      generation,
      attempts: 1,
      fingerprint: request.fingerprint,
      endsAtMs: ledger.now() + request.leaseMs,
      outcome: undefined,
    })
    return { claimed: true, generation, attempts: 1 }
  }

  async function takeOver(request: TakeOverRequest): Promise<Granted | undefined> {
    const name = recordName(request.identity)
    const record = records.get(name)
    if (record === undefined || locks.has(name)) return undefined
    const { owner, generation } = request.seen
    if (record.owner !== owner || record.generation !== generation) return undefined
    if (!isReplaceable(ledger.see(record, request.callerNowMs))) return undefined
    record.attempts = record.state === 'done' ? 1 : record.attempts + 1
    record.state = 'running'
    record.owner = request.owner
    record.generation = ledger.nextGeneration(record)
    record.fingerprint = request.fingerprint
    record.endsAtMs = ledger.now() + request.leaseMs
    record.outcome = undefined
    return { generation: record.generation, attempts: record.attempts }
  }

  async function abandon(verdict: Verdict & { owner: string; retainMs: number }): Promise<boolean> {
    const record = records.get(recordName(verdict.identity))
    if (record?.owner !== verdict.owner || record.generation !== verdict.generation) return false
    if (record.state !== 'running' || record.endsAtMs > ledger.now()) return false
    return move(record, 'unknown', verdict.retainMs)
  }

  async function renew(renewals: readonly Renewal[]): Promise<readonly boolean[]> {
    return renewals.map((renewal) => {
      const record = owned(renewal)
      if (record === undefined) return false
      record.endsAtMs = ledger.now() + renewal.leaseMs
      return true
    })
  }

  async function complete(completion: Completion): Promise<boolean> {
    const record = owned(completion)
    if (record === undefined) return false
    record.outcome = completion.outcome
    return move(record, 'done', completion.retainMs)
  }

  async function release(wish: Release): Promise<boolean> {
    const record = owned(wish)
    return record !== undefined && move(record, 'released', wish.retainMs)
  }

  async function find(identity: Identity, callerNowMs: number): Promise<SeenRecord | undefined> {
    const record = records.get(recordName(identity))
    return record && ledger.see(record, callerNowMs)
  }

  function owned({ identity, owner }: Owned): MemoryRecord | undefined {
    const name = recordName(identity)
    const record = records.get(name)
    if (locks.get(name)?.written) return undefined
    return record?.state === 'running' && record.owner === owner ? record : undefined
  }

  function move(record: MemoryRecord, state: RecordState, retainMs: number): true {
    record.state = state
    record.endsAtMs = ledger.now() + retainMs
    return true
  }

  return {
    name: 'memory',
    guarantees: { atomicWithEffect: true, survivesCrash: false, fenced: true },
    claim,
    takeOver,
    abandon,
    renew,
    complete,
    release,
    find,
    transactions: createTransactions(ledger),
    sweeping: { sweep: async ({ limit, callerNowMs }) => sweep(ledger, limit, callerNowMs) },
    operating: createOperating(ledger, move),
  }
}

/** What a lease-mode claim is shown of an open transaction: somebody holds the intent. */
function seenOfLock(lock: { owner: string; fingerprint: Uint8Array }, storeNowMs: number): SeenRecord {
  const { owner, fingerprint } = lock
  const base = { generation: 0, attempts: 1, hasSteps: false }
  return { state: 'running', owner, fingerprint, live: true, leftMs: 1000, storeNowMs, ...base }
}

function sweep({ records, locks, see }: Ledger, limit: number, callerNowMs: number): number {
  let removed = 0
  for (const [name, record] of records) {
    if (removed >= limit) break
    const past = !see(record, callerNowMs).live
    if (!past || locks.has(name) || (record.state !== 'done' && record.state !== 'released')) continue
    records.delete(name)
    removed += 1
  }
  return removed
}

function createOperating(
  { records, see, now }: Ledger,
  move: (record: MemoryRecord, state: RecordState, retainMs: number) => true,
): Operating {
  function named({ identity, generation }: Verdict): MemoryRecord | undefined {
    const record = records.get(recordName(identity))
    return record?.generation === generation ? record : undefined
  }

  async function list(filter: { states?: readonly RecordState[]; limit: number }): Promise<RecordSummary[]> {
    const all = [...records.values()].filter(({ state }) => filter.states?.includes(state) ?? true)
    return all.slice(0, filter.limit).map((record) => {
      const { state, generation, attempts, live, leftMs } = see(record, now())
      return { identity: record.identity, state, generation, attempts, live, leftMs }
    })
  }

  async function count(): Promise<Record<RecordState, number>> {
    const counts = { running: 0, released: 0, done: 0, unknown: 0, dead: 0 }
    for (const { state } of records.values()) counts[state] += 1
    return counts
  }

  return {
    list,
    count,
    resolveDone: async (verdict) => {
      const record = named(verdict)
      if (record?.state !== 'unknown') return false
      record.outcome = verdict.outcome
      return move(record, 'done', verdict.retainMs)
    },
    resolveReleased: async (verdict) => {
      const record = named(verdict)
      const stuck = record?.state === 'running' && record.endsAtMs <= now()
      if (record === undefined || !(record.state === 'unknown' || record.state === 'dead' || stuck))
        return false
      return move(record, 'released', verdict.retainMs)
    },
  }
}
