/**
 * The store on PostgreSQL 13 and later, over a node-postgres Pool.
 *
 * The database is the only judge: its unique index decides who wins, its clock who is late, its transactions what is true.
 */
import { fail } from '../errors.js'
import type { Operating, Store, Sweeping, Transactions } from '../store.js'
import { transactions } from './postgres/begin.js'
import { leaseMode } from './postgres/lease-mode.js'
import { migrating } from './postgres/migrating.js'
import { nodePostgres, type PgPool, type PgTx } from './postgres/node-postgres.js'
import { renewals } from './postgres/renewals.js'
import { type Isolation, statementsFor } from './postgres/statements.js'
import { operating, sweeping } from './postgres/upkeep.js'

export type { PgPool, PgPoolClient, PgTx } from './postgres/node-postgres.js'

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
}

/** A {@link Store} on PostgreSQL, with every ability. */
export interface PostgresStore<Tx> extends Store<Tx> {
  readonly transactions: Transactions<Tx>
  readonly sweeping: Sweeping
  readonly operating: Operating
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
 * @param pool A `pg.Pool` of node-postgres 8.11 or later. It stays the caller's: `close()` does not end it.
 * @throws `OPTION_INVALID` for an option or a pool that cannot be right.
 *
 * @example
 * ```ts
 * const store = postgres(new pg.Pool({ connectionString: process.env.DATABASE_URL }))
 * await store.migrate()
 * const safe = retrysafe({ store, mode: 'transaction', scope: (req) => req.user.id })
 * ```
 */
export function postgres<Pool extends PgPool>(
  pool: Pool,
  options: PostgresOptions = {},
): PostgresStore<PgTx<Pool>> {
  const { schema, prepare, isolation } = checked(pool, options)
  const statements = statementsFor(schema, isolation)
  const driver = nodePostgres(pool, prepare)
  const leases = renewals(driver, statements, schema)
  const migrations = migrating(driver, schema)
  return {
    name: 'postgres',
    guarantees: { atomicWithEffect: true, survivesCrash: true, fenced: true },
    ...leaseMode(driver, statements, schema),
    renew: leases.renew,
    transactions: transactions({ driver, statements, schema, insertFirst: isolation !== 'read committed' }),
    sweeping: sweeping(driver, statements, schema),
    operating: operating(driver, statements, schema),
    migrating: migrations,
    migrate: migrations.migrate,
    sql: migrations.sql,
    close: leases.close,
  }
}

const levels: readonly string[] = ['read committed', 'repeatable read', 'serializable'] satisfies Isolation[]

function checked(pool: unknown, options: PostgresOptions) {
  const { schema = 'retrysafe', prepare = false, isolation = 'read committed' } = options
  if (!looksLikePool(pool))
    throw fail('OPTION_INVALID', { detail: 'postgres() takes a Pool of node-postgres' })
  // Quoted in every statement; what could end the quotes never gets there.
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/i.test(schema))
    throw fail('OPTION_INVALID', { detail: 'schema must be a plain identifier of at most 63 characters' })
  if (typeof prepare !== 'boolean') throw fail('OPTION_INVALID', { detail: 'prepare must be true or false' })
  if (!levels.includes(isolation))
    throw fail('OPTION_INVALID', { detail: `isolation must be one of: ${levels.join(', ')}` })
  return { schema, prepare, isolation }
}

function looksLikePool(pool: unknown): boolean {
  if (typeof pool !== 'object' || pool === null) return false
  // `totalCount` tells a Pool from a Client, which has `connect` and `query` too.
  return ['connect', 'query', 'on'].every((name) => name in pool) && 'totalCount' in pool
}
