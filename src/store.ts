/**
 * What a store is: the ledger of claims, and the only judge of who owns one.
 *
 * A store holds one record per (key, scope) and answers a few questions about it, each in ONE atomic command. It decides nothing
 * about the protocol: it reports what it saw, and `protocol.ts` decides. What it must get right is the race, and no type can
 * say it, so here it is in prose:
 *
 * - **Exactly one of any number of concurrent claims of an absent record is granted.** Not "read, then write": the database's unique
 *   index or one atomic command decides (rule 1). The others are shown the record.
 * - **Every later write names the owner token** and is one statement conditional on it and on the state `running`. When it no longer
 *   fits, nothing is written and the answer says so: losing is a value, not an exception (rule 3).
 * - **A takeover is a compare-and-swap on exactly what was seen**: owner and generation, and still past its end by the store's own clock,
 *   judged inside the same command (rule 5). A locked row is a held row: no claim waits for a lock (rule 6).
 * - **Durations go in, the store's clock judges.** The caller's clock only narrows: an outcome is past retention when the
 *   lesser of the store's clock and the caller's plus {@link clockToleranceMs} has passed its end (rule 5).
 * - Equality of key, scope and fingerprint is equality of bytes, whatever the collation (rule 14).
 *
 * Exceptions are for broken things: no connection, a record that cannot be read. Abilities beyond the seven
 * basic functions are said by presence.
 */

/** How far the caller's clock may lag behind the store's before a done key is kept for longer than its retention, in ms (rule 5). */
export const clockToleranceMs = 5 * 60_000

/** The identity of a record. `scope` already holds the operation's name, if there is one. */
export interface Identity {
  readonly key: string
  readonly scope: string
}

/** Names a record by one text: the key's length says where it ends, so no two identities share it (rule 14). */
export function recordName({ key, scope }: Identity): string {
  return `${key.length}:${key}${scope}`
}

/** States a record can be in; `absent` is the lack of one. */
export type RecordState = 'running' | 'released' | 'done' | 'unknown' | 'dead'

/** A record as a look-up saw it. */
export interface SeenRecord {
  readonly state: RecordState
  /** Token of the last claim; kept when done, so that a lost answer is recognised as one's own (rule 2). */
  readonly owner: string
  /** Grows with every claim of the record and never repeats: max(stored + 1, the store's clock in µs). */
  readonly generation: number
  /** Claims so far, this one included. */
  readonly attempts: number
  readonly fingerprint: Uint8Array
  /** Running: the lease has not run out. Else: retention is not past. Judged by the store's clock (rule 5). */
  readonly live: boolean
  /** What is left until that end by the store's clock, in ms; 0 or less when past. */
  readonly leftMs: number
  /** Versioned bytes; present when done. */
  readonly outcome?: Uint8Array
  /** Whether steps were begun or recorded: such a record is never dropped while unfinished (rule 20). */
  readonly hasSteps: boolean
  /** The store's wall clock at the look-up in ms since 1970, to tell how far apart the clocks are. */
  readonly storeNowMs: number
}

export interface ClaimRequest {
  readonly identity: Identity
  /** Drawn before the claim is sent (rule 2). */
  readonly owner: string
  readonly fingerprint: Uint8Array
  readonly leaseMs: number
  /** The caller's wall clock, in ms since 1970. */
  readonly callerNowMs: number
}

export type ClaimAnswer =
  | { readonly claimed: true; readonly generation: number; readonly attempts: number }
  /** `seen` undefined: somebody holds the identity, and nothing more can be told. */
  | { readonly claimed: false; readonly seen: SeenRecord | undefined }

export interface TakeOverRequest extends ClaimRequest {
  /** Exactly what was seen; anything else in the store refuses the takeover. */
  readonly seen: { readonly owner: string; readonly generation: number }
}

export interface Granted {
  readonly generation: number
  readonly attempts: number
}

/** Names one claim: what every write after it is conditional on. */
export interface Owned {
  readonly identity: Identity
  readonly owner: string
}

export interface Renewal extends Owned {
  readonly leaseMs: number
}

export interface Completion extends Owned {
  readonly outcome: Uint8Array
  readonly retainMs: number
}

export interface Release extends Owned {
  /** How long a released record is remembered, in ms. */
  readonly retainMs: number
}

/** Names a record as an operator saw it (rule 3: the generation is part of the guard). */
export interface Verdict {
  readonly identity: Identity
  readonly generation: number
}

/** What a store guarantees; printed in the docs and checked against the server's settings. */
export interface Guarantees {
  /** Record and the work's own writes can commit in one transaction. */
  readonly atomicWithEffect: boolean
  /** An acknowledged claim is still there after the store's process was killed. */
  readonly survivesCrash: boolean
  /** A late owner's writes are refused. */
  readonly fenced: boolean
}

/** A ledger of claims. `Tx` is what the work writes through, where the store can share a transaction with it. */
export interface Store<Tx = unknown> {
  /** Name for messages, events and docs: `postgres`, say. */
  readonly name: string
  readonly guarantees: Guarantees

  /** Inserts the record as `running`, or answers with the one that is there. Never changes an existing record. */
  claim(request: ClaimRequest): Promise<ClaimAnswer>
  /**
   * Takes over the record that was seen if it is released, or running past its lease, or done past its retention. Undefined: it changed,
   * it lives, or it is locked; nothing was written. Kept steps stay, but for a record that was done.
   */
  takeOver(request: TakeOverRequest): Promise<Granted | undefined>
  /** Moves a running record whose lease has run out, exactly as seen, to `unknown`; it is kept for `retainMs`. */
  abandon(verdict: Verdict & { readonly owner: string; readonly retainMs: number }): Promise<boolean>
  /**
   * Extends leases, many in one command, on a connection that the work cannot exhaust (rule 6). One answer for each, in order: extended, not
   * ours any more, or undefined: ours, but somebody has locked it, and it was not waited for.
   */
  renew(renewals: readonly Renewal[]): Promise<readonly (boolean | undefined)[]>
  /** `running` → `done` with the outcome, for the owner only. False: not ours any more, nothing was written. */
  complete(completion: Completion): Promise<boolean>
  /** `running` → `released`, for the owner only; kept steps stay. False: not ours any more, nothing was written. */
  release(release: Release): Promise<boolean>
  /** Reads the record from the primary; never writes. */
  find(identity: Identity, callerNowMs: number): Promise<SeenRecord | undefined>

  readonly transactions?: Transactions<Tx>
  readonly sweeping?: Sweeping
  readonly operating?: Operating
  readonly migrating?: Migrating
  readonly inspecting?: Inspecting
  /** Lets go of what the store opened by itself (never of what was passed in). */
  close?(): Promise<void>
}

/** Ability: the record, the work's writes and the outcome commit in one database transaction. */
export interface Transactions<Tx> {
  /**
   * Opens a transaction, tries the lock of the identity without waiting, and then looks the record up, so that the look-up cannot be older
   * than the lock. Throws when the store cannot be reached: then nothing was begun.
   */
  begin(request: BeginRequest): Promise<OpenTransaction<Tx>>
  /** The same inside the caller's own open transaction, behind a savepoint; no setting of it is changed (rule 7). */
  within(tx: Tx, request: BeginRequest): Promise<OpenTransaction<Tx>>
  /**
   * Opens a plain transaction for the last writes of a lease-mode owner; its `save` is conditional on the owner token and the state
   * `running`, and raises inside the database when it is not met, so that the COMMIT behind it cannot succeed (rule 3).
   */
  open(owned: Owned, timeoutMs: number): Promise<OpenTransaction<Tx>>
  /**
   * After a commit whose answer was lost, once the old transaction has certainly ended: the record as it stands, or `undecided` while the
   * lock is still held by it (rule 10). Asks the primary on a fresh connection; throws when it cannot be reached.
   */
  readBack(identity: Identity, callerNowMs: number): Promise<{ undecided: boolean; seen?: SeenRecord }>
  /**
   * Gives a lease-mode owner's claim a new token, so that a commit still under way under the old one can no longer land (rule 10).
   * `locked`: that commit still holds the row. `lost`: the record is not running under the old token.
   */
  renameOwner(owned: Owned, owner: string): Promise<'renamed' | 'locked' | 'lost'>
  /** Whether an error of the work means that the database chose it as the victim of a rival: serialisation failure or deadlock (rule 21). */
  isConflict(error: unknown): boolean
}

export interface BeginRequest {
  readonly identity: Identity
  readonly owner: string
  /** Asked for only where the claim has to be written before the work (stricter isolation, `within`). */
  fingerprint(): Uint8Array
  /** After this long without a statement the server rolls the transaction back (rule 21), in ms. */
  readonly timeoutMs: number
  /** Whether `save` may well be asked to `undoWork`: a store for which that takes preparing prepares it now. */
  readonly mayUndoWork?: boolean
  readonly callerNowMs: number
}

/** A transaction with a claim in it. Nothing is visible to others until `save` answers `committed`. */
export interface OpenTransaction<Tx> {
  /** What the look-up saw. A record that stands is final whatever the lock said; held means no lock and no record (rule 1). */
  readonly seen: SeenRecord | undefined
  /** Whether the lock was granted: nobody else is in the work of this identity. */
  readonly granted: boolean
  /** Generation this claim gets, when granted. */
  readonly generation: number
  /** What the work writes through; every use after {@link OpenTransaction.settle} throws `ATTEMPT_SETTLED` and sends nothing (rule 21). */
  readonly tx: Tx
  /** Whether the work has used `tx`. */
  used(): boolean
  /** Calls back once if the connection dies while the work runs. */
  onLost(listener: (cause: unknown) => void): void
  /** Closes `tx` for good and waits for its statements in flight. */
  settle(): Promise<void>
  /** The point of no return was passed: from now on no rival may get the claim, also while the work's writes are rolled back. */
  pin(): void
  /**
   * Writes the outcome and commits, in one flight. `undoWork` first rolls the work's writes back, so that the outcome is saved alone
   * (rule 11). Never throws. After `aborted` because of a failed statement that the work swallowed, a second `save` with `undoWork`
   * is still possible; `rollback` ends every other case.
   */
  save(save: Save): Promise<SaveAnswer>
  /**
   * Rolls everything back and gives the connection back, or destroys it. Never throws, may be called after any answer of `save`, any number
   * of times. `abandon` does not wait for a statement still running: the connection is destroyed at once.
   */
  rollback(how?: 'abandon'): Promise<void>
}

export interface Save {
  readonly fingerprint: Uint8Array
  readonly outcome: Uint8Array
  readonly retainMs: number
  readonly undoWork: boolean
}

export type SaveAnswer =
  /** Durable. For `within`: written, and true once the caller's own transaction commits. */
  | { readonly kind: 'committed' }
  /** Another record stands, or the lease was lost: all of ours is rolled back. */
  | { readonly kind: 'refused' }
  /** The database rolled it back for a reason of the work (a deferred constraint, a serialisation failure): its error. */
  | { readonly kind: 'rolledBack'; readonly error: unknown }
  /** A failed statement was swallowed, or the work ended the transaction by itself; nothing of ours is stored. */
  | { readonly kind: 'aborted'; readonly error?: unknown }
  /** The answer was lost: it may be committed, or not, or not yet (rule 10). */
  | { readonly kind: 'ambiguous'; readonly error: unknown }

/** Ability: removes what is past retention. */
export interface Sweeping {
  /**
   * Deletes up to `limit` done or released records that are past retention; never a live one, an unknown, a dead, or one with steps. Locks
   * what it selects without waiting and repeats the condition in the delete (rule 20). Answers how many it removed.
   */
  sweep(request: { readonly limit: number; readonly callerNowMs: number }): Promise<number>
}

/** A record as an operator sees it: no fingerprint, and the outcome only where one record is asked for. */
export interface RecordSummary {
  readonly identity: Identity
  readonly state: RecordState
  readonly generation: number
  readonly attempts: number
  readonly live: boolean
  readonly leftMs: number
}

/** Ability: an operator looks and decides. Every verdict names the generation that was seen (rule 3). */
export interface Operating {
  list(filter: {
    readonly states?: readonly RecordState[]
    readonly limit: number
  }): Promise<readonly RecordSummary[]>
  count(): Promise<Readonly<Record<RecordState, number>>>
  /** An `unknown` record becomes `done` with this outcome. */
  resolveDone(
    verdict: Verdict & { readonly outcome: Uint8Array; readonly retainMs: number },
  ): Promise<boolean>
  /** An `unknown` or `dead` record, or a running one past its lease, becomes `released`: the next attempt runs. */
  resolveReleased(verdict: Verdict & { readonly retainMs: number }): Promise<boolean>
}

/** Ability: brings its own tables. */
export interface Migrating {
  /** Runs the migrations that are missing; any number of processes may call it at once. */
  migrate(): Promise<readonly string[]>
  /** The SQL of all migrations, to paste into one's own tool. */
  sql(): string
}

/** What was found about a live store: a fact, and what it means where it is not good. */
export type Finding =
  | {
      /** Stable name of the check: lower-case words, `synchronous-commit`. Scripts rely on it. */
      readonly id: string
      readonly level: 'ok'
      /** What was seen, with its figure. Never a key, a scope, a body or a secret. */
      readonly found: string
    }
  | {
      readonly id: string
      /**
       * `error`: a promise of the store does not hold, or it cannot work. `warn`: it holds, and something is going wrong. `note`: good to know,
       * and right for some.
       */
      readonly level: 'note' | 'warn' | 'error'
      readonly found: string
      /** What it does to callers and their effects. */
      readonly means: string
      /** What to do about it: the setting, the statement, the command. */
      readonly advice: string
    }

/** Ability: looks at the real server behind the store, for `retrysafe doctor`. */
export interface Inspecting {
  /**
   * Compares the server, its settings and the tables with what {@link Guarantees} declares, as the sessions of this very store see them. Reads only;
   * asks what an ordinary role may ask and what stays cheap on a large table. Every check that was made answers, `ok` too, so that silence means
   * that it was not made. Throws when the server cannot be asked at all; a check that is refused by itself is a `note`.
   */
  inspect(): Promise<readonly Finding[]>
}

/** Whether a store can share a transaction with the work. */
export function canTransact<Tx>(
  store: Store<Tx>,
): store is Store<Tx> & { readonly transactions: Transactions<Tx> } {
  return store.transactions !== undefined
}
