/**
 * The store suite's harness for PostgreSQL: loaded by the test itself and by the processes that it starts.
 */
import type pg from 'pg'
import type { PostgresOptions } from 'retrysafe/postgres'
import type { Effect, EffectLedger, OpenedStore, OwnTransaction } from 'retrysafe/testing'
import { type Client, type ClientName, clients, nodePostgresPool, through } from './clients.js'

export type Tx = object

/** How a client is opened; a process is sent the same. */
export interface Opening {
  readonly connectionString: string
  readonly store?: PostgresOptions
  /** Default `node-postgres`. */
  readonly client?: ClientName
}

let pool: pg.Pool | undefined
/** For transactions of the user's own. */
let users: Client | undefined

/** Outside transactions: reads of the ledger, and what moves the clock. */
function outside(): pg.Pool {
  if (pool === undefined) throw new Error('open a store first')
  return pool
}

function clientOf({ connectionString, store, client = 'node-postgres' }: Opening): Client {
  return clients[client](connectionString, store)
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(opening: unknown): Promise<OpenedStore<Tx>> {
  const { connectionString } = opening as Opening
  pool ??= nodePostgresPool(connectionString)
  users ??= clientOf(opening as Opening)
  const { store, end } = clientOf(opening as Opening)
  return {
    store,
    close: async () => {
      await store.close()
      await end()
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
  const ending = [pool, users]
  pool = undefined
  users = undefined
  await Promise.all(ending.map((one) => one?.end()))
}

/** To the judge the same as its clock moved forward. */
export async function advance(ms: number): Promise<void> {
  // In words: under a server's default of SERIALIZABLE it would fail beside what it moves the clock of.
  const client = await outside().connect()
  try {
    await client.query('begin isolation level read committed')
    await client.query(`update retrysafe.intent set ends_at = ends_at - $1::bigint * interval '1 ms'`, [ms])
    await client.query('commit')
  } finally {
    client.release()
  }
}

export const ledger: EffectLedger<Tx> = {
  write: async (tx, { key, payload, generation }) => {
    const insert = 'insert into effect (key, payload, generation) values ($1, $2, $3)'
    await through(tx ?? outside(), insert, [key, payload, generation])
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
  if (users === undefined) throw new Error('open a store first')
  return users.own()
}

export async function plant(
  { key, scope }: { key: string; scope: string },
  shape: 'dead' | 'steps',
): Promise<void> {
  const change = shape === 'dead' ? 'state = 5' : `steps = '"charge"'`
  await outside().query(`update retrysafe.intent set ${change} where key = $1 and scope = $2`, [key, scope])
}
