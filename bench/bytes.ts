/** What a key costs on disk, all indexes included: written through the store as a service writes it, then vacuumed and measured. */
import { type BenchDatabase, openSetting } from './database.js'
import { contenderOf, type Scenario } from './scenario.js'

export interface KeyBytes {
  readonly id: string
  readonly table: number
  readonly indexes: number
}

/**
 * Main forks only: the maps of free space and visibility are a few pages however small the table is, which is nothing for a million keys
 * and 10 bytes a key for five thousand.
 */
const sizes = `select
  sum(pg_relation_size(c.oid, 'main')) filter (where c.relkind = 'r')::float8 as "table",
  sum(pg_relation_size(c.oid, 'main')) filter (where c.relkind = 'i')::float8 as indexes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'retrysafe'`

/** Empties the store's table first. */
export async function bytesOf(database: BenchDatabase, scenario: Scenario, keys: number): Promise<KeyBytes> {
  const concurrency = 8
  const setting = await openSetting(database.connectionString, concurrency, [])
  try {
    await database.ask('truncate retrysafe.intent')
    const before = await measure(database)
    await contenderOf(scenario, setting, concurrency).run(keys)
    const after = await measure(database)
    return {
      id: scenario.id,
      table: (after.table - before.table) / keys,
      indexes: (after.indexes - before.indexes) / keys,
    }
  } finally {
    await setting.close()
  }
}

async function measure(database: BenchDatabase): Promise<{ table: number; indexes: number }> {
  await database.ask('vacuum (analyze) retrysafe.intent')
  const [row] = await database.ask(sizes)
  return { table: Number(row?.table), indexes: Number(row?.indexes) }
}
