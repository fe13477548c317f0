/**
 * What the work is given, and what a runner has to know about a call. Types only, shared by the runners and by the surfaces
 * (the API, HTTP) that build calls.
 */
import type { Fingerprint } from './fingerprint.js'
import type { Policy } from './options.js'
import type { Outcome } from './outcome.js'
import type { Identity } from './store.js'

/** What every attempt is given. */
export interface Attempt {
  /** The caller's key. */
  readonly key: string
  /** Who the key belongs to. */
  readonly scope: string
  /** Which claim of this record it is, from 1. */
  readonly attempt: number
  /** Grows with every claim of the record and never repeats: a fencing token for systems that take one. */
  readonly generation: number
  /** Fires when the attempt must stop: lease lost, connection lost, or `workTimeoutMs` over. Its reason is the error. */
  readonly signal: AbortSignal
  /**
   * Marks a point of no return: however the work ends from here on, its answer is kept and replayed (rule 11); its writes through `tx` stand
   * only if it ends in a value or a reply below 400. It holds once that end is stored. A crash, a lost connection, `workTimeoutMs` or a lost
   * lease before then stores nothing, and the next attempt runs. Costs one statement in transaction mode on PostgreSQL, unless `keep` is
   * `'all'` or a function.
   */
  keepFailure(): void
}

/** An attempt in `transaction` mode. */
export interface TransactionAttempt<Tx> extends Attempt {
  /** The transaction that claim, writes and outcome share. It dies with the attempt: later use throws `ATTEMPT_SETTLED`. */
  readonly tx: Tx
}

/** An attempt in `lease` mode. */
export interface LeaseAttempt<Tx> extends Attempt {
  /**
   * Writes the last rows and the outcome in one transaction; the value is the intent's outcome, and nothing the work does afterwards changes it
   * (rule 26). A lost lease rolls the writes back.
   *
   * @throws `LEASE_LOST` when another attempt owns the intent, `OPTION_INVALID` on a store without transactions, `ATTEMPT_SETTLED` the second time.
   */
  commit<Value>(write: (tx: Tx) => Promise<Value> | Value): Promise<Value>
}

/** What a call answers. */
export interface Answer<Value> {
  readonly value: Value
  /** True when the value is the stored outcome of an earlier attempt. */
  readonly replayed: boolean
}

/** An ending in the form it would be stored in, and what policy says of it. */
export interface Ended {
  readonly kept: boolean
  /** Its writes must not stand: a throw, a 5xx, or a refusal after the point of no return. */
  readonly failure: boolean
  readonly outcome: Outcome
}

/** How a surface turns endings into outcomes and back. */
export interface Format<Value> {
  ofValue(value: Value, noReturn: boolean): Ended
  ofError(error: unknown, noReturn: boolean): Ended
  /** Throws `NOT_REPLAYABLE`, or the stored failure. */
  toValue(outcome: Outcome): Value
}

/** An intent with everything resolved that a claim needs. */
export interface ResolvedIntent {
  readonly identity: Identity
  /** The scope without the operation. */
  readonly scope: string
  readonly operation: string | undefined
  readonly fingerprint: Fingerprint
  readonly policy: Policy
  /** Whether the caller says that it has sent this before. It is believed for speed only. */
  readonly isRetry: boolean
  /** What `mayReplay` gets: the request, or the intent. */
  readonly context: unknown
}

/** One attempt as a runner sees it. */
export interface Call<Value> extends ResolvedIntent {
  readonly format: Format<Value>
}
