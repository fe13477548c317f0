/**
 * The store suite's harness for PostgreSQL: loaded by the test itself and by the processes that it starts.
 */
import pg from 'pg'
import { type PgTx, type PostgresOptions, postgres } from 'retrysafe/postgres'
import type { Effect, EffectLedger, OpenedStore, OwnTransaction } from 'retrysafe/testing'

/** Few enough that the clients and processes of a case leave the shared server room for other test files. */
const connections = 5

export type Tx = PgTx<pg.Pool>

/** How a client is opened; a process is sent the same. */
export interface Opening {
  readonly connectionString: string
  readonly store?: PostgresOptions
}

let pool: pg.Pool | undefined

/** Outside transactions: reads of the ledger, and what moves the clock. */
function outside(): pg.Pool {
  if (pool === undefined) throw new Error('open a store first')
  return pool
}

function poolOf(connectionString: string): pg.Pool {
  const opened = new pg.Pool({ connectionString, max: connections, allowExitOnIdle: true })
  opened.on('error', () => undefined)
  return opened
}

/** The harness's own statements are no subject of the suite: the settings under test are not theirs. */
function withoutSettings(connectionString: string): string {
  const url = new URL(connectionString)
  url.searchParams.delete('options')
  return url.href
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(opening: unknown): Promise<OpenedStore<Tx>> {
  const { connectionString, store: options } = opening as Opening
  pool ??= poolOf(withoutSettings(connectionString))
  const own = poolOf(connectionString)
  const store = postgres(own, options)
  return {
    store,
    close: async () => {
      await store.close()
      await own.end()
    },
  }
}

/** Creates the tables; the one of effects has no unique constraint, which would hide a duplicate. */
export async function prepare(opening: Opening): Promise<void> {
  const { store, close } = await open(opening)
  await store.migrating?.migrate()
  await outside().query('create table effect (key text, payload text, generation bigint)')
  await close()
}

export async function closeOutside(): Promise<void> {
  await pool?.end()
  pool = undefined
}

/** To the judge the same as its clock moved forward. */
export async function advance(ms: number): Promise<void> {
  await outside().query(`update retrysafe.intent set ends_at = ends_at - $1::bigint * interval '1 ms'`, [ms])
}

export const ledger: EffectLedger<Tx> = {
  write: async (tx, { key, payload, generation }) => {
    const insert = 'insert into effect (key, payload, generation) values ($1, $2, $3)'
    await (tx ?? outside()).query(insert, [key, payload, generation])
  },
  read: async (key) => {
    const { rows } = await outside().query<Effect>(
      'select key, payload, generation::float8 as generation from effect where key = $1',
      [key],
    )
    return rows
  },
}

export async function own(): Promise<OwnTransaction<Tx>> {
  const client = await outside().connect()
  await client.query('begin')
  async function end(how: 'commit' | 'rollback'): Promise<void> {
    await client.query(how)
    client.release()
  }
  return { tx: client, commit: () => end('commit'), rollback: () => end('rollback') }
}

export async function plant(
  { key, scope }: { key: string; scope: string },
  shape: 'dead' | 'steps',
): Promise<void> {
  const change = shape === 'dead' ? 'state = 5' : `steps = '"charge"'`
  await outside().query(`update retrysafe.intent set ${change} where key = $1 and scope = $2`, [key, scope])
}
