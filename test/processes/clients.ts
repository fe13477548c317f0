/** The clients that the suite of the PostgreSQL store is run over, each opened, written through and closed in its own way. */
import pg from 'pg'
import postgresJs from 'postgres'
import { type PostgresOptions, type PostgresStore, type PostgresTool, postgres } from 'retrysafe/postgres'
import type { OwnTransaction } from 'retrysafe/testing'

/** Few enough that the clients and processes of a case leave the shared server room for other test files. */
const connections = 5

export interface Client {
  readonly store: PostgresStore<object>
  /** Opens a transaction as the user would. */
  own(): Promise<OwnTransaction<object>>
  end(): Promise<void>
}

type Values = readonly (string | number)[]
type Open = (connectionString: string, options: PostgresOptions | undefined) => Client

export const clients = {
  'node-postgres': overNodePostgres,
  'postgres.js': overPostgresJs,
  /** As behind a pooler that knows no names, and with everything about values changed that can be. */
  'postgres.js, own types': overPostgresJsOwnTypes,
  'a tool over node-postgres': overToolOnNodePostgres,
  'a tool over postgres.js': overToolOnPostgresJs,
} as const satisfies Record<string, Open>

export type ClientName = keyof typeof clients

export function nodePostgresPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: connections, allowExitOnIdle: true })
  pool.on('error', () => undefined)
  // A client that is checked out and has no listener of its own ends the process when its server does.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

function overNodePostgres(connectionString: string, options?: PostgresOptions): Client {
  const pool = nodePostgresPool(connectionString)
  return { store: postgres(pool, options), own: () => ownOfPool(pool), end: () => pool.end() }
}

function overToolOnNodePostgres(connectionString: string, options?: PostgresOptions): Client {
  const pool = nodePostgresPool(connectionString)
  return { store: postgres(toolOn(pool), options), own: () => ownOfPool(pool), end: () => pool.end() }
}

/** A tool with its own way to run transactions, as an ORM has. */
export function toolOn(pool: pg.Pool): PostgresTool<pg.PoolClient> {
  return {
    transaction: async (work) => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const value = await work(client)
        await client.query('commit')
        client.release()
        return value
      } catch (error) {
        await client.query('rollback').then(
          () => client.release(),
          () => client.release(true),
        )
        throw error
      }
    },
    query: async (tx, text) => (await (tx ?? pool).query<object>(text)).rows,
  }
}

async function ownOfPool(pool: pg.Pool): Promise<OwnTransaction<object>> {
  const client = await pool.connect()
  await client.query('begin')
  async function end(how: 'commit' | 'rollback'): Promise<void> {
    await client.query(how)
    client.release()
  }
  return { tx: client, commit: () => end('commit'), rollback: () => end('rollback') }
}

/** Idle connections are closed soon, so that a process can end. */
const quiet = { max: connections, idle_timeout: 1, onnotice: () => undefined }

function overPostgresJs(connectionString: string, options?: PostgresOptions): Client {
  return overSql(postgresJs(connectionString, quiet), options)
}

function overPostgresJsOwnTypes(connectionString: string, options?: PostgresOptions): Client {
  const strange = { to: 17, from: [16, 17, 20, 25, 2950], serialize: String, parse: () => 'strange' }
  const settings = { ...quiet, prepare: false, fetch_types: false, transform: postgresJs.camel }
  return overSql(postgresJs(connectionString, { ...settings, types: { strange } }), options)
}

/** A tool that wraps the errors of its driver, as many do. */
function overToolOnPostgresJs(connectionString: string, options?: PostgresOptions): Client {
  const sql = postgresJs(connectionString, quiet)
  const tool: PostgresTool<postgresJs.TransactionSql> = {
    transaction: (work) => sql.begin(work).catch(wrapped),
    query: (tx, text) => (tx ?? sql).unsafe<object[]>(text).catch(wrapped),
  }
  return { store: postgres(tool, options), own: () => ownOf(sql), end: () => sql.end({ timeout: 5 }) }
}

function wrapped(cause: unknown): never {
  throw new Error('the tool has failed', { cause })
}

function overSql(sql: postgresJs.Sql, options?: PostgresOptions): Client {
  return { store: postgres(sql, options), own: () => ownOf(sql), end: () => sql.end({ timeout: 5 }) }
}

function ownOf(sql: postgresJs.Sql): Promise<OwnTransaction<object>> {
  return new Promise((resolve, reject) => {
    const ended = sql.begin(
      (tx) =>
        new Promise<void>((commit, rollback) => {
          resolve({
            tx,
            commit: async () => {
              commit()
              await ended
            },
            rollback: async () => {
              rollback(new Error('rolled back'))
              await ended.catch(() => undefined)
            },
          })
        }),
    )
    ended.catch(reject)
  })
}

/** Runs a statement through whatever the client's work writes through. */
export async function through(tx: object, text: string, values: Values): Promise<void> {
  if (typeof tx === 'function') await (tx as postgresJs.TransactionSql).unsafe(text, [...values])
  else await (tx as pg.Pool).query(text, [...values])
}
