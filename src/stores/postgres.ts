/**
 * The store on PostgreSQL 13 and later, over the client that the user has.
 *
 * The database is the only judge: its unique index decides who wins, its clock who is late, its transactions what is true.
 */
import { longestTimerMs } from '../clock.js'
import { fail } from '../errors.js'
import type { Inspecting, Operating, Store, Sweeping, Transactions } from '../store.js'
import { transactions } from './postgres/begin.js'
import { driverFor, type PostgresHandle, type PostgresTx } from './postgres/handles.js'
import { inspecting } from './postgres/inspecting.js'
import { leaseMode } from './postgres/lease-mode.js'
import { migrating } from './postgres/migrating.js'
import { patient } from './postgres/patience.js'
import { renewals } from './postgres/renewals.js'
import { type Isolation, statementsFor } from './postgres/statements.js'
import type { PostgresTool } from './postgres/tool.js'
import { operating, sweeping } from './postgres/upkeep.js'

export type { PostgresHandle, PostgresTx } from './postgres/handles.js'
export type { PgPool, PgPoolClient, PgTx } from './postgres/node-postgres.js'
export type { Pglite, PgliteTx } from './postgres/pglite.js'
export type { PostgresJs, PostgresJsTx } from './postgres/postgres-js.js'
export type { PostgresTool } from './postgres/tool.js'
export type { DrizzleDb, DrizzleTx } from './tools/drizzle.js'
export type { KnexDb, KnexTx } from './tools/knex.js'
export type { ToolHandle, ToolTx } from './tools/known.js'
export type { KyselyDb, KyselyTx } from './tools/kysely.js'
export type { PrismaDb, PrismaTx } from './tools/prisma.js'
export type { TypeormDataSource, TypeormTx } from './tools/typeorm.js'

/** Options of {@link postgres}. */
export interface PostgresOptions {
  /** Schema of the tables; a plain identifier. Default `retrysafe`. */
  readonly schema?: string
  /**
   * Whether statements are prepared under a name. A quarter more throughput, but a pooler in transaction mode may forbid it. Default
   * false.
   */
  readonly prepare?: boolean
  /**
   * Isolation of our transactions, and so of the work in them. The stricter levels write the claim before the work, which leaves a dead
   * row version for each request. Default `read committed`.
   */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
  /**
   * How long the database may take to answer one of our own round trips, or the pool to give a connection, in ms; then it counts as down.
   * Default 10 s.
   */
  readonly answerTimeoutMs?: number
}

/** A {@link Store} on PostgreSQL, with every ability. */
export interface PostgresStore<Tx> extends Store<Tx> {
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
 * Keeps records in PostgreSQL, in the same database as the work, so that both commit together.
 *
 * Costs one round trip before the work and none more than COMMIT after it. Needs the primary: a standby is refused.
 *
 * @param handle A `pg.Pool` of node-postgres 8.11 or later, the `sql` of postgres.js 3.4, a PGlite; the database of Drizzle, a Kysely, a `PrismaClient`,
 *   a Knex or the `DataSource` of TypeORM, whose own transaction is then `tx`; or `{ transaction, query }` of any other tool. It stays the caller's:
 *   `close()` does not end it.
 * @throws `OPTION_INVALID` for an option or a handle that cannot be right.
 *
 * @example
 * ```ts
 * const store = postgres(new pg.Pool({ connectionString: process.env.DATABASE_URL }))
 * await store.migrate()
 * const safe = retrysafe({ store, mode: 'transaction', scope: (req) => req.user.id })
 * ```
 */
export function postgres<Handle extends PostgresHandle>(
  handle: Handle,
  options?: PostgresOptions,
): PostgresStore<PostgresTx<Handle>>
export function postgres<Tx>(tool: PostgresTool<Tx>, options?: PostgresOptions): PostgresStore<Tx>
export function postgres<Tx>(
  handle: PostgresHandle | PostgresTool<Tx>,
  options: PostgresOptions = {},
): PostgresStore<Tx> {
  const { schema, prepare, isolation, answerTimeoutMs } = checked(options)
  const statements = statementsFor(schema, isolation)
  const found = driverFor(handle, prepare)
  const driver = patient(found.driver, answerTimeoutMs)
  const leases = renewals(driver, statements, schema)
  const migrations = migrating(driver, schema)
  return {
    name: 'postgres',
    guarantees: { atomicWithEffect: true, survivesCrash: found.survivesCrash, fenced: true },
    ...leaseMode(driver, statements, schema),
    renew: leases.renew,
    transactions: transactions({ driver, statements, schema, insertFirst: isolation !== 'read committed' }),
    sweeping: sweeping(driver, statements, schema),
    operating: operating(driver, statements, schema),
    migrating: migrations,
    inspecting: inspecting(driver, schema, prepare),
    migrate: migrations.migrate,
    sql: migrations.sql,
    close: leases.close,
  }
}

const levels: readonly string[] = ['read committed', 'repeatable read', 'serializable'] satisfies Isolation[]

function checked(options: PostgresOptions) {
  const { schema = 'retrysafe', prepare = false, isolation = 'read committed' } = options
  const { answerTimeoutMs = 10_000 } = options
  // Quoted in every statement; what could end the quotes never gets there.
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/i.test(schema))
    throw fail('OPTION_INVALID', { detail: 'schema must be a plain identifier of at most 63 characters' })
  if (typeof prepare !== 'boolean') throw fail('OPTION_INVALID', { detail: 'prepare must be true or false' })
  if (!levels.includes(isolation))
    throw fail('OPTION_INVALID', { detail: `isolation must be one of: ${levels.join(', ')}` })
  if (!Number.isSafeInteger(answerTimeoutMs) || answerTimeoutMs < 1 || answerTimeoutMs > longestTimerMs)
    throw fail('OPTION_INVALID', { detail: 'answerTimeoutMs must be a whole number of milliseconds' })
  return { schema, prepare, isolation, answerTimeoutMs }
}
