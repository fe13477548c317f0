/** postgres.js over the database of a {@link Bench}. */
import postgresJs from 'postgres'
import { type PostgresOptions, type PostgresStore, postgres } from 'retrysafe/postgres'
import type { Bench } from './harness.js'

export type Sql = postgresJs.Sql
export type SqlTx = postgresJs.TransactionSql

export interface SqlStore {
  readonly sql: Sql
  readonly store: PostgresStore<SqlTx>
}

const opened: Sql[] = []

/** `config` is that of postgres.js. */
export function openSql(
  { database }: Pick<Bench, 'database'>,
  config: postgresJs.Options<Record<string, postgresJs.PostgresType>> = {},
  options: PostgresOptions = {},
): SqlStore {
  const sql = postgresJs(database.connectionString, {
    max: 4,
    onnotice: () => undefined,
    // In s; a server that comes back is tried again at once.
    backoff: () => 0.01,
    ...config,
  }) as Sql
  opened.push(sql)
  return { sql, store: postgres(sql, options) }
}

export async function closeAllSql(): Promise<void> {
  await Promise.all(opened.splice(0).map((sql) => sql.end({ timeout: 1 })))
}

/** Fails unless as many transactions can be open at once as the pool has connections: for one that is lost to it the others wait. */
export async function expectWholePool(sql: Sql): Promise<void> {
  const each = <T>(run: () => Promise<T>) => Promise.all(Array.from({ length: sql.options.max }, run))
  // The first query of a connection opened again may fail with the error that ended the last one (postgres.js 3.4.9).
  await each(() => sql`select pg_sleep(0.01)`.catch(() => undefined))
  let open = 0
  let all: () => void = () => undefined
  const together = new Promise<void>((resolve) => {
    all = resolve
  })
  await each(() =>
    sql.begin(async (tx) => {
      await tx`select 1`
      open += 1
      if (open === sql.options.max) all()
      await together
    }),
  )
}
