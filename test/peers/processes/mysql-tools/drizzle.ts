import { mysql } from '../../../processes/own-mysql.js'
import { disguised, promisePool } from '../mysql-store.js'
import { peer } from '../peer.js'
import type { MysqlToolClient } from './client.js'

const { bigint, mysqlTable, text, varchar } =
  await peer<typeof import('drizzle-orm/mysql-core')>('drizzle-orm/mysql-core')
const { drizzle } = await peer<typeof import('drizzle-orm/mysql2')>('drizzle-orm/mysql2')

const effects = mysqlTable('effect', {
  key: varchar({ length: 1000 }),
  payload: text(),
  generation: bigint({ mode: 'number' }),
})
const uniques = mysqlTable('unique_effect', { key: varchar({ length: 200 }) })

/** The server is spoken to as one of MySQL. */
export function drizzleAsMysql(url: string): MysqlToolClient {
  return drizzleOnMysql2(url, disguised)
}

export function drizzleOnMysql2(
  url: string,
  dress: (pool: ReturnType<typeof promisePool>) => void = () => undefined,
): MysqlToolClient {
  const pool = promisePool(url)
  dress(pool)
  const db = drizzle(pool)
  type Db = typeof db
  return {
    store: (options) => mysql(db, options),
    insert: async (tx, effect) => ((tx ?? db) as Db).insert(effects).values(effect),
    insertUnique: async (tx, key) => (tx as Db).insert(uniques).values({ key }),
    run: async (tx, statement) => (tx as Db).execute(statement),
    violation: 'DrizzleQueryError',
    nested: (tx, work) => (tx as Db).transaction(work),
    transaction: (work) => db.transaction(work),
    end: () => pool.end(),
  }
}
