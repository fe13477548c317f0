/**
 * `commit` in lease mode: the last writes of the work and the outcome in one database transaction, fenced by the owner token. A zombie's
 * commit cannot land: its save raises inside the database, and the writes before it roll back (rules 3 and 26).
 */
import type { Call } from './attempt.js'
import { sleep } from './clock.js'
import { type Engine, encode, pauseMs, storeFailure } from './engine.js'
import { fail } from './errors.js'
import { armed, hit } from './failpoints.js'
import type { Lease } from './lease.js'
import type { OpenTransaction, SaveAnswer, Transactions } from './store.js'

export interface Commit<Tx> {
  commit<Value>(write: (tx: Tx) => Promise<Value> | Value): Promise<Value>
  /** Refuses further commits and waits for one under way, at most `limitMs`; then its connection is given up, and it cannot land. */
  close(limitMs: number): Promise<void>
  /** The outcome, once it is durable. */
  outcome(): Uint8Array | undefined
  value(): unknown
  /** A commit was sent and nobody can tell yet what became of it: the claim must not be released. */
  undecided(): boolean
  /** A commit was refused: the claim is somebody else's. */
  refused(): boolean
}

export function createCommit<Tx, Result>(engine: Engine<Tx>, call: Call<Result>, lease: Lease): Commit<Tx> {
  let outcome: Uint8Array | undefined
  let value: unknown
  let undecided = false
  let refused = false
  let closed = false
  let running: Promise<unknown> | undefined
  let opened: OpenTransaction<Tx> | undefined
  let connectionLost = false

  async function commit<Value>(write: (tx: Tx) => Promise<Value> | Value): Promise<Value> {
    const { transactions } = engine.store
    if (transactions === undefined) {
      throw fail('OPTION_INVALID', {
        detail: `the ${engine.store.name} store has no transactions to commit in`,
      })
    }
    if (closed) throw fail('ATTEMPT_SETTLED')
    if (running !== undefined || outcome !== undefined) {
      throw fail('ATTEMPT_SETTLED', { detail: 'commit was called before; one attempt commits once' })
    }
    lease.check()
    const started = once(transactions, write)
    running = started.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await started
    } finally {
      running = undefined
    }
  }

  async function once<Value>(
    transactions: Transactions<Tx>,
    write: (tx: Tx) => Promise<Value> | Value,
  ): Promise<Value> {
    const owned = { identity: call.identity, owner: lease.owner }
    if (armed()) await hit('commit.open')
    const open = await transactions
      .open(owned, Math.max(1, Math.ceil(lease.leftMs()) + call.policy.leaseMs))
      .catch(unreachable)
    opened = open
    open.onLost(() => {
      connectionLost = true
    })
    const { written, bytes } = await writeThrough(open, write)
    const { retainMs } = call.policy
    lease.completing = true
    const answer = await open.save({
      fingerprint: call.fingerprint.bytes(),
      outcome: bytes,
      retainMs,
      undoWork: false,
    })
    if (answer.kind !== 'committed') await open.rollback()
    if (armed()) await hit('commit.saved')
    await conclude(transactions, answer)
    outcome = bytes
    value = written
    return written
  }

  async function writeThrough<Value>(
    open: OpenTransaction<Tx>,
    write: (tx: Tx) => Promise<Value> | Value,
  ): Promise<{ written: Value; bytes: Uint8Array }> {
    try {
      if (armed()) await hit('commit.opened')
      const written = await write(open.tx)
      await open.settle()
      lease.check()
      const bytes = encode(call, call.format.ofValue(written as unknown as Result, true).outcome)
      if (armed()) await hit('commit.save')
      return { written, bytes }
    } catch (error) {
      await open.settle()
      await open.rollback()
      throw connectionLost ? unavailable(error) : error
    }
  }

  /** Returns when the commit is durable; throws what the work should hear otherwise. */
  async function conclude(transactions: Transactions<Tx>, answer: SaveAnswer): Promise<void> {
    if (answer.kind === 'committed') return
    if (answer.kind === 'ambiguous') return settleAmbiguous(transactions, answer.error)
    lease.completing = false
    if (answer.kind === 'refused') throw lost()
    if (answer.kind === 'aborted') throw fail('TRANSACTION_ABORTED', { cause: answer.error })
    if (connectionLost) throw unavailable(answer.error)
    throw transactions.isConflict(answer.error)
      ? fail('TRANSACTION_CONFLICT', { cause: answer.error })
      : answer.error
  }

  /**
   * The answer to COMMIT was lost. A new owner token makes the old transaction harmless, if it has not landed yet (rule 10): then
   * it certainly rolled back, and the attempt goes on under the new token.
   */
  async function settleAmbiguous(transactions: Transactions<Tx>, cause: unknown): Promise<void> {
    engine.events.emit('storeError', { during: 'commit', error: cause })
    const owned = { identity: call.identity, owner: lease.owner }
    const renamed = engine.random.ownerToken()
    undecided = true
    for (let looks = 0; lease.leftMs() > 0; looks += 1) {
      try {
        if (armed()) await hit('commit.readBack')
        const seen = await engine.store.find(owned.identity, engine.clock.now())
        if (seen?.state === 'done' && seen.owner === owned.owner) {
          undecided = false
          return
        }
        const mine = seen?.state === 'running' && seen.owner === renamed
        const answer = mine ? 'renamed' : await transactions.renameOwner(owned, renamed)
        if (armed()) await hit('commit.renamed')
        if (answer === 'renamed') {
          undecided = false
          lease.owner = renamed
          lease.completing = false
          throw fail('STORE_UNAVAILABLE', { cause, detail: 'the commit was rolled back' })
        }
        if (answer === 'lost' && seen !== undefined && seen.owner !== owned.owner) {
          undecided = false
          throw lost(cause)
        }
      } catch (error) {
        if (!undecided) throw error
        engine.events.emit('storeError', { during: 'readBack', error })
      }
      await sleep(engine.clock, pauseMs(engine, looks))
    }
    throw fail('STORE_UNAVAILABLE', { cause, detail: 'the commit is not known yet' })
  }

  function lost(cause?: unknown): Error {
    refused = true
    return fail('LEASE_LOST', { cause })
  }

  function unreachable(error: unknown): never {
    throw unavailable(error)
  }

  function unavailable(error: unknown): Error {
    return storeFailure(engine, 'commit', error)
  }

  async function close(limitMs: number): Promise<void> {
    closed = true
    if (running === undefined) return
    const stop = new AbortController()
    await Promise.race([running, sleep(engine.clock, limitMs, stop.signal)])
    stop.abort()
    if (running !== undefined) await opened?.rollback('abandon')
  }

  return {
    commit,
    close,
    outcome: () => outcome,
    value: () => value,
    undecided: () => undecided,
    refused: () => refused,
  }
}
