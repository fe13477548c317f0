/**
 * The store on SQLite: one file, one writer at a time, no server. Over better-sqlite3 or `node:sqlite`.
 *
 * Nothing here waits inside SQLite: its busy handler sleeps in the only thread there is (rule 37). In the process the next in line is woken; for
 * other processes a timer asks again.
 */
import { longestTimerMs } from '../clock.js'
import { fail } from '../errors.js'
import type { Inspecting, Operating, Store, Sweeping, Transactions } from '../store.js'
import { connectionOf } from './sqlite/connection.js'
import { dressed, isDrizzle, type RealDrizzle, type SqliteDrizzle, type SqliteTx } from './sqlite/drizzle.js'
import { checkHandle, isHandle, type SqliteHandle } from './sqlite/handles.js'
import { inspecting } from './sqlite/inspecting.js'
import { leaseMode } from './sqlite/lease-mode.js'
import { migrating } from './sqlite/migrating.js'
import { fileOf, openedSource, sharedSource } from './sqlite/sources.js'
import { transactions } from './sqlite/transactions.js'
import type { Context } from './sqlite/turns.js'
import { operating, sweeping } from './sqlite/upkeep.js'

export type { SqliteDrizzle, SqliteTx } from './sqlite/drizzle.js'
export type { BetterSqlite3, NodeSqlite, SqliteHandle } from './sqlite/handles.js'

/** Opens connections to one and the same file. */
export interface SqliteOpener<Db extends SqliteHandle | SqliteDrizzle> {
  /**
   * Gives a new connection; the store closes it. It is put into WAL mode, and with `durable` its COMMITs are synced. Registered functions and
   * pragmas that the work needs are set in here.
   */
  readonly open: () => Db
}

/** Options of {@link sqlite}. */
export interface SqliteOptions {
  /**
   * Whether a COMMIT of ours is on the disk before it is acknowledged (`synchronous = full`), so that it outlives a power cut. Without it the setting
   * of the connection stays: in WAL mode better-sqlite3 has NORMAL, and a power cut may then take the last commits, record and writes together. A killed process
   * loses nothing either way. Costs one sync of the disk for each attempt. Default true.
   */
  readonly durable?: boolean
  /** How long other writers may keep the file, in ms; then it counts as down and the caller gets 503. Default 10 s. */
  readonly answerTimeoutMs?: number
}

/** A {@link Store} on SQLite, with every ability. */
export interface SqliteStore<Tx> extends Store<Tx> {
  readonly transactions: Transactions<Tx>
  readonly sweeping: Sweeping
  readonly operating: Operating
  readonly inspecting: Inspecting
  /** Runs the migrations that are missing and names them; any number of processes may call it at once. */
  migrate(): Promise<readonly string[]>
  /** The SQL of all migrations, to paste into one's own tool. */
  sql(): string
  close(): Promise<void>
}

/**
 * Keeps records in SQLite, in the same file as the work, so that both commit together.
 *
 * Over one connection that is shared with the rest of the program, the work in transaction mode is synchronous: between BEGIN and COMMIT it may
 * wait for nothing, or it is rolled back with `TRANSACTION_ABORTED`. With `{ open }` each transaction has a connection of its own and the work may await; the file
 * has one writer at a time all the same. An attempt costs two look-ups, one of them under the write lock, and one COMMIT.
 *
 * @param db A `Database` of better-sqlite3, a `DatabaseSync` of `node:sqlite` (Node 22.16 or later), a Drizzle over better-sqlite3 (`tx` is its own transaction then), or `{ open }` that
 *   opens them. A connection
 *   that is passed in stays the caller's; those that `open` gave are closed by `close()`.
 * @throws `OPTION_INVALID` for an option or a connection that cannot be right.
 *
 * @example
 * ```ts
 * import { type BetterSqlite3, sqlite } from 'retrysafe/sqlite'
 * // Opens the file: `() => new Database('orders.db')`, say.
 * const safeOn = async (open: () => BetterSqlite3) => {
 *   const store = sqlite({ open })
 *   await store.migrate()
 *   return retrysafe({ store, mode: 'transaction', scope: (req) => req.user.id })
 * }
 * ```
 */
export function sqlite<Db extends SqliteHandle | SqliteDrizzle>(
  db: Db,
  options?: SqliteOptions,
): SqliteStore<SqliteTx<Db>>
export function sqlite<Db extends SqliteHandle | SqliteDrizzle>(
  opener: SqliteOpener<Db>,
  options?: SqliteOptions,
): SqliteStore<SqliteTx<Db>>
export function sqlite(
  given: SqliteHandle | SqliteDrizzle | SqliteOpener<SqliteHandle | SqliteDrizzle>,
  options: SqliteOptions = {},
): SqliteStore<object> {
  const { durable, answerTimeoutMs } = checked(options)
  let drizzle: RealDrizzle | undefined
  const connectionIn = (db: unknown) => {
    if (!isDrizzle(db)) return db
    drizzle = db
    return db.$client
  }
  const source = isOpener(given)
    ? openedSource(() => connectionIn(given.open()), durable)
    : sharedSource(
        checkHandle(connectionIn(given), 'sqlite() takes { open }, a Drizzle over better-sqlite3,'),
      )
  const context: Context = { source, limitMs: answerTimeoutMs, synced: durable }
  const migrations = migrating(context)
  return {
    name: 'sqlite',
    guarantees: {
      atomicWithEffect: true,
      // A file outlives the process that wrote it, whatever the level of its syncs.
      survivesCrash: source.shared === undefined || fileOf(connectionOf(source.shared)) !== '',
      fenced: true,
    },
    ...leaseMode(context),
    transactions: dressed(transactions(context), () => drizzle),
    sweeping: sweeping(context),
    operating: operating(context),
    inspecting: inspecting(context),
    migrating: migrations,
    migrate: migrations.migrate,
    sql: migrations.sql,
    close: async () => source.close(),
  }
}

/** A `DatabaseSync` has a function `open` as well; what can prepare a statement is a connection. */
function isOpener(given: unknown): given is SqliteOpener<SqliteHandle | SqliteDrizzle> {
  if (typeof given !== 'object' || given === null || isHandle(given) || 'prepare' in given) return false
  return 'open' in given && typeof given.open === 'function'
}

function checked(options: SqliteOptions) {
  const { durable = true, answerTimeoutMs = 10_000 } = options
  if (typeof durable !== 'boolean') throw fail('OPTION_INVALID', { detail: 'durable must be true or false' })
  if (!Number.isSafeInteger(answerTimeoutMs) || answerTimeoutMs < 1 || answerTimeoutMs > longestTimerMs)
    throw fail('OPTION_INVALID', { detail: 'answerTimeoutMs must be a whole number of milliseconds' })
  return { durable, answerTimeoutMs }
}
