/** The PostgreSQL that is measured: one of its own, durable as delivered, with nothing that starts by itself in the middle of a round. */
import pg from 'pg'
import postgresJs from 'postgres'
import { retrysafe } from 'retrysafe'
import { postgres } from 'retrysafe/postgres'
import type { PostgresServer } from '../servers/postgres.js'
import { temporaryPostgres } from '../servers/temporary.js'
import { uuidKey } from './keys.js'
import type { Setting } from './scenario.js'
import { inTransaction } from './work.js'

export interface BenchDatabase {
  readonly server: PostgresServer
  /** Database `bench`. */
  readonly connectionString: string
  /** One statement on a connection that ends with it, so that its own statistics are flushed before the answer is used. */
  ask(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** The same in database `postgres`, whose commits are not those of `bench`. */
  askOutside(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

/** Autovacuum and timed checkpoints would hit whichever scenario runs at that moment; {@link tidy} does both between blocks. */
const settings = {
  autovacuum: 'off',
  checkpoint_timeout: '1h',
  max_wal_size: '4GB',
  shared_buffers: '256MB',
}

/** What makes a commit cost what it costs in production. With any of these off, the bare transaction has next to nothing to wait for. */
const durable = ['fsync', 'synchronous_commit', 'full_page_writes']

const tables = [
  'create schema bench',
  `create table bench.orders (
    id bigint generated always as identity primary key, customer_id text not null, total_cents bigint not null)`,
  // Shaped as the store's own table, so that the bare look-up reads as much.
  `create table bench.replies (
    key text collate "C" not null, scope text collate "C" not null, reply text not null, primary key (key, scope))`,
]

export async function openDatabase(): Promise<BenchDatabase> {
  const server = await temporaryPostgres({ settings })
  try {
    const connectionString = await server.createDatabase('bench')
    const ask = (text: string, values?: unknown[]) => askAt(connectionString, text, values)
    for (const name of durable) {
      const [row] = await ask(`show ${name}`)
      if (row?.[name] !== 'on')
        throw new Error(`${name} is not on: nothing measured here would mean anything`)
    }
    for (const table of tables) await ask(table)
    return {
      server,
      connectionString,
      ask,
      askOutside: (text, values) => askAt(server.connectionString, text, values),
      close: () => server.stop(),
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function askAt(
  connectionString: string,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

export async function versionOf(database: BenchDatabase): Promise<string> {
  const [row] = await database.ask('show server_version')
  return `PostgreSQL ${row?.server_version}`
}

/** Pays what earlier blocks owe: dead rows, statistics of the planner, dirty pages. */
export async function tidy(database: BenchDatabase): Promise<void> {
  await database.ask('vacuum (analyze)')
  await database.ask('checkpoint')
}

/** Keys whose outcomes the cache is given, and room for those that pass through it. */
const cachedKeyCount = 64
const cacheBytes = 256 * 1024

/** A pool a client, and the instances on them. `connections` is the concurrency, so that nobody queues for one. */
export async function openSetting(
  connectionString: string,
  connections: number,
  finished: readonly string[],
): Promise<Setting> {
  const pool = new pg.Pool({ connectionString, max: connections, application_name: 'retrysafe-bench' })
  pool.on('error', () => undefined)
  const store = postgres(pool, { prepare: true })
  await store.migrate()
  const safe = retrysafe({ store })
  const cached = retrysafe({ store, cacheBytes })
  const cachedKeys = Array.from({ length: cachedKeyCount }, uuidKey)
  for (const key of cachedKeys) await inTransaction(cached, key)
  const sql = postgresJs(connectionString, { max: connections, onnotice: () => undefined })
  const safeJs = retrysafe({ store: postgres(sql, { prepare: true }) })
  async function close(): Promise<void> {
    await Promise.all([safe.close(), cached.close(), safeJs.close()])
    await Promise.all([pool.end(), sql.end()])
  }
  return { pool, safe, sql, safeJs, cached, cachedKeys, finished, close }
}
