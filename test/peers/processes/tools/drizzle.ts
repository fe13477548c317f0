/** Drizzle, over both of its drivers that are most used. */
import pg from 'pg'
import postgresJs from 'postgres'
import { postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

const { bigint, pgTable, text } = await peer<typeof import('drizzle-orm/pg-core')>('drizzle-orm/pg-core')
const overPool = await peer<typeof import('drizzle-orm/node-postgres')>('drizzle-orm/node-postgres')
const overSql = await peer<typeof import('drizzle-orm/postgres-js')>('drizzle-orm/postgres-js')

const effects = pgTable('effect', {
  key: text(),
  payload: text(),
  generation: bigint({ mode: 'number' }),
})
const uniques = pgTable('unique_effect', { key: text() })

type OnPool = ReturnType<typeof overPool.drizzle>
type OnSql = ReturnType<typeof overSql.drizzle>

function clientOf(db: OnPool | OnSql, end: () => Promise<unknown>): ToolClient {
  // One interface for both: what is used of them is the same.
  const root = db as OnPool
  return {
    handle: db,
    store: (options) =>
      'totalCount' in db.$client ? postgres(db as OnPool, options) : postgres(db as OnSql, options),
    insert: (tx, effect) => ((tx ?? root) as OnPool).insert(effects).values(effect),
    insertUnique: (tx, key) => (tx as OnPool).insert(uniques).values({ key }),
    violation: 'DrizzleQueryError',
    build: (tx, effect) => {
      const query = (tx as OnPool).insert(effects).values(effect)
      return () => query
    },
    nested: (tx, work) => (tx as OnPool).transaction(work),
    transaction: (work) => root.transaction(work),
    end,
  }
}

export function drizzleOnPool(connectionString: string): ToolClient {
  // Nobody listens to it here: the store does.
  const pool = new pg.Pool({ connectionString, max: connections, allowExitOnIdle: true })
  return clientOf(overPool.drizzle(pool), () => pool.end())
}

export function drizzleOnSql(connectionString: string): ToolClient {
  const sql = postgresJs(connectionString, { max: connections, idle_timeout: 1, onnotice: () => undefined })
  return clientOf(overSql.drizzle(sql), () => sql.end({ timeout: 5 }))
}
