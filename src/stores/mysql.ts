/**
 * The store on MariaDB 10.6 and MySQL 8.0 and later, over the client that the user has.
 *
 * The database is the only judge: its primary key decides who wins, its clock who is late, its transactions what is true.
 */
import { longestTimerMs } from '../clock.js'
import { fail } from '../errors.js'
import type { Inspecting, Operating, Store, Sweeping, Transactions } from '../store.js'
import { transactions } from './mysql/begin.js'
import { driverFor, type MysqlHandle, type MysqlPool, type MysqlTx } from './mysql/handles.js'
import { inspecting } from './mysql/inspecting.js'
import { leaseMode } from './mysql/lease-mode.js'
import { migrating } from './mysql/migrating.js'
import { patient } from './mysql/patience.js'
import { renewals } from './mysql/renewals.js'
import { serverOf } from './mysql/server.js'
import { statementsFor } from './mysql/statements.js'
import type { MysqlTool } from './mysql/tool.js'
import { operating, sweeping } from './mysql/upkeep.js'

export type { MysqlHandle, MysqlPool, MysqlTx } from './mysql/handles.js'
export type { MariadbPool, MariadbPoolConnection } from './mysql/mariadb.js'
export type { Mysql2Pool, Mysql2PromisePool } from './mysql/mysql2.js'
export type { MysqlTool } from './mysql/tool.js'
export type { DrizzleDb, DrizzleTx } from './tools/drizzle.js'
export type { KnexDb, KnexTx } from './tools/knex.js'
export type { ToolHandle, ToolTx } from './tools/known.js'
export type { KyselyDb, KyselyTx } from './tools/kysely.js'
export type { PrismaDb, PrismaTx } from './tools/prisma.js'
export type { Isolation, SqlAnswer } from './tools/tool.js'
export type { TypeormDataSource, TypeormTx } from './tools/typeorm.js'

/** Options of {@link mysql}. */
export interface MysqlOptions {
  /**
   * Database of the tables `retrysafe_intent` and `retrysafe_migration`, on the server of the work; a plain identifier. The same in every process, whatever the pool's own
   * is. Default `retrysafe`, which `migrate()` creates.
   */
  readonly schema?: string
  /**
   * A small pool for the renewals of lease mode alone. mysql2 needs none: a connection is opened beside its pool. Without it over `mariadb` or a tool,
   * renewals stand in line with the work for a connection of the pool.
   */
  readonly renewalPool?: MysqlPool
  /**
   * How long the database may take to answer one of our own statements, or the pool to give a connection, in ms; then it counts as down.
   * Default 10 s.
   */
  readonly answerTimeoutMs?: number
}

/** A {@link Store} on MySQL or MariaDB, with every ability. */
export interface MysqlStore<Tx> extends Store<Tx> {
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
 * Keeps records in MySQL or MariaDB, on the same server as the work, so that both commit together.
 *
 * Costs a fresh request five round trips before the work (two over `mariadb`, which pipelines) and two more than COMMIT after it. Needs InnoDB, the primary, and a binary log, if there is one, in the format ROW
 * or MIXED: its transactions are READ COMMITTED.
 *
 * Over a tool every statement is a round trip of its own, and there is one more, which puts the idle limit back before the end.
 *
 * @param handle A pool of `mysql2/promise` or `mysql2` 3, or of `mariadb` 3; or a Drizzle, a Kysely, a Knex or a DataSource of TypeORM over mysql2, and then `tx` is its own
 *   transaction; or `{ transaction, query }`. It stays the caller's: `close()` does not end it.
 * @throws `OPTION_INVALID` for an option or a handle that cannot be right.
 *
 * @example
 * ```ts
 * import { type MysqlPool, mysql } from 'retrysafe/mysql'
 * // A pool of mysql2/promise, mysql2 or mariadb, made as you make it.
 * const safeOn = async (pool: MysqlPool) => {
 *   const store = mysql(pool)
 *   await store.migrate()
 *   return retrysafe({ store, mode: 'transaction', scope: (req) => req.user.id })
 * }
 * ```
 */
export function mysql<Handle extends MysqlHandle>(
  handle: Handle,
  options?: MysqlOptions,
): MysqlStore<MysqlTx<Handle>>
/** Over any other tool that can run a transaction and a statement; `tx` is what its `transaction` gives. */
export function mysql<Tx>(handle: MysqlTool<Tx>, options?: MysqlOptions): MysqlStore<Tx>
export function mysql<Tx>(handle: MysqlHandle | MysqlTool<Tx>, options: MysqlOptions = {}): MysqlStore<Tx> {
  const { schema, answerTimeoutMs, renewalPool } = checked(options)
  const driver = patient(driverFor<Tx>(handle), answerTimeoutMs)
  const ground = {
    connections: driver,
    schema,
    statements: statementsFor(schema),
    server: serverOf(driver.begins),
  }
  const other = renewalPool && patient(driverFor<unknown>(renewalPool), answerTimeoutMs)
  const leases = renewals(other === undefined ? ground : { ...ground, connections: other })
  const migrations = migrating(ground)
  return {
    name: 'mysql',
    guarantees: { atomicWithEffect: true, survivesCrash: true, fenced: true },
    ...leaseMode(ground),
    renew: leases.renew,
    transactions: transactions({ ...ground, driver }),
    sweeping: sweeping(ground),
    operating: operating(ground),
    inspecting: inspecting(ground),
    migrating: migrations,
    migrate: migrations.migrate,
    sql: migrations.sql,
    close: leases.close,
  }
}

function checked({ schema = 'retrysafe', answerTimeoutMs = 10_000, renewalPool }: MysqlOptions) {
  // Quoted in every statement; what could end the quotes never gets there.
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,63}$/i.test(schema))
    throw fail('OPTION_INVALID', { detail: 'schema must be a plain identifier of at most 64 characters' })
  if (!Number.isSafeInteger(answerTimeoutMs) || answerTimeoutMs < 1 || answerTimeoutMs > longestTimerMs)
    throw fail('OPTION_INVALID', { detail: 'answerTimeoutMs must be a whole number of milliseconds' })
  return { schema, answerTimeoutMs, renewalPool }
}
