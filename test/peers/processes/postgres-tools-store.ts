/** The store suite's harness for the tools on PostgreSQL: loaded by the test itself and by the processes that it starts. */
import type pg from 'pg'
import type { Effect, EffectLedger, OpenedStore, OwnTransaction } from '../../processes/own-name.js'
import { ownOf, type ToolClient } from './tools/client.js'
import { poolOf } from './tools/pool.js'
import { type ToolName, tools } from './tools/tools.js'

/** How a client is opened; a process is sent the same. */
export interface Opening {
  readonly connectionString: string
  readonly tool: ToolName
}

/** Outside transactions: reads of the ledger, and what moves the clock. */
let pool: pg.Pool | undefined
/** For transactions of the user's own, and to write through any. */
let users: ToolClient | undefined

function outside(): pg.Pool {
  if (pool === undefined) throw new Error('open a store first')
  return pool
}

function user(): ToolClient {
  if (users === undefined) throw new Error('open a store first')
  return users
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(opening: unknown): Promise<OpenedStore<object>> {
  const { connectionString, tool } = opening as Opening
  pool ??= poolOf(connectionString)
  users ??= await tools[tool](connectionString)
  const client = await tools[tool](connectionString)
  const store = client.store()
  return {
    store,
    close: async () => {
      await store.close()
      await client.end()
    },
  }
}

/** None of them has a unique constraint on the key, which would hide a duplicate, but for the one that is there to be violated. */
export async function prepare(opening: Opening): Promise<void> {
  const { store, close } = await open(opening)
  await store.migrating?.migrate()
  await outside().query('create table effect (id serial, key text, payload text, generation bigint)')
  await outside().query('create table unique_effect (id serial, key text constraint one_each unique)')
  await close()
}

export async function closeOutside(): Promise<void> {
  const ending = [pool?.end(), users?.end()]
  pool = undefined
  users = undefined
  await Promise.all(ending)
}

/** To the judge the same as its clock moved forward. */
export async function advance(ms: number): Promise<void> {
  await outside().query(`update retrysafe.intent set ends_at = ends_at - $1::bigint * interval '1 ms'`, [ms])
}

export const ledger: EffectLedger<object> = {
  write: async (tx, effect) => {
    await user().insert(tx, effect)
  },
  read: async (key) => {
    const { rows } = await outside().query<Effect>(
      'select key, payload, generation::float8 as generation from effect where key = $1',
      [key],
    )
    return rows
  },
}

export function own(): Promise<OwnTransaction<object>> {
  return ownOf(user())
}

export async function plant(
  { key, scope }: { key: string; scope: string },
  shape: 'dead' | 'steps',
): Promise<void> {
  const change = shape === 'dead' ? 'state = 5' : `steps = '"charge"'`
  await outside().query(`update retrysafe.intent set ${change} where key = $1 and scope = $2`, [key, scope])
}
