/**
 * What somebody who proves a store gives to the suite.
 */
import type { Identity, Store } from '../../store.js'

export interface OpenedStore<Tx> {
  readonly store: Store<Tx>
  /** Lets go of the client, with every connection it opened. */
  close(): Promise<void> | void
}

/** An effect as the harness keeps it: whose it is, what it wrote, and which claim wrote it. */
export interface Effect {
  readonly key: string
  readonly payload: string
  readonly generation: number
}

/** The effects. It has NO unique constraint: a constraint would hide the duplicate that the suite is looking for. */
export interface EffectLedger<Tx> {
  /** Adds an effect through the transaction; outside any where there is none. */
  write(tx: Tx | undefined, effect: Effect): Promise<void> | void
  /** All committed effects of a key. */
  read(key: string): Promise<readonly Effect[]> | readonly Effect[]
}

/** A transaction that the user has opened and will end. */
export interface OwnTransaction<Tx> {
  readonly tx: Tx
  commit(): Promise<void> | void
  rollback(): Promise<void> | void
}

/** What a store may do without. `idleTimeout`: the server itself rolls back a transaction whose owner has gone silent (rule 21). */
export type Ability = 'transactions' | 'sweeping' | 'operating' | 'idleTimeout'

export interface StoreHarness<Tx extends object> {
  /** A NEW client of the same ledger, with connections of its own. A store that lives in one process gives the same store again. */
  open(): Promise<OpenedStore<Tx>>
  /**
   * Moves the clock that the store judges by forward, in ms. Where the clock is the server's, shifting every stored end
   * back by as much is the same to the judge.
   */
  advance(ms: number): Promise<void> | void
  /** Where effects are written; without it, what commits together cannot be checked. */
  readonly ledger?: EffectLedger<Tx>
  /** Opens a transaction as the user would, for `within`. */
  own?(): Promise<OwnTransaction<Tx>> | OwnTransaction<Tx>
  /** Puts a record that is there into a shape that no function of the store produces by itself. */
  plant?(identity: Identity, shape: 'dead' | 'steps'): Promise<void>
  /**
   * Module for other processes; it exports `open(data)` and, where there is one, `ledger`, as here. `data` reaches it as a structured
   * clone: a connection string, say.
   */
  readonly processes?: { readonly module: string | URL; readonly data?: unknown }
  /**
   * Whether a transaction may fail because a rival was first, as under a stricter isolation level (rule 21). The suite then sends it again, as
   * a caller would that is told 503.
   */
  readonly mayConflict?: boolean
  /**
   * Whether an open transaction keeps every other writer of the ledger out, as in SQLite. What a case would write beside it is then written
   * before it begins, which is the only order there is.
   */
  readonly oneWriter?: boolean
  /** Abilities that the store does without, each with its reason; the reason is what the skipped cases show. */
  readonly lacks?: Readonly<Partial<Record<Ability, string>>>
}

/** What a module for other processes exports. */
export interface ProcessModule<Tx extends object> {
  open(data: unknown): Promise<OpenedStore<Tx>>
  readonly ledger?: EffectLedger<Tx>
}
