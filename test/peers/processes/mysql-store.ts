/** The store suite's harness for MySQL and MariaDB: loaded by the test itself and by the processes that it starts. */
import type * as Mariadb from 'mariadb'
import type { Pool as CallbackPool } from 'mysql2'
import type { Pool as PromisePool } from 'mysql2/promise'
import {
  type Effect,
  type EffectLedger,
  type MysqlOptions,
  type MysqlStore,
  mysql,
  type OpenedStore,
  type OwnTransaction,
} from '../../processes/own-mysql.js'
import { peer } from './peer.js'

export type Tx = object

export const clientNames = ['mysql2/promise', 'mysql2', 'mariadb'] as const
export type ClientName = (typeof clientNames)[number]

/** How a client is opened; a process is sent the same. */
export interface Opening {
  readonly url: string
  readonly client: ClientName
  /** Statements for every session of the client: `set time_zone`, say. */
  readonly session?: readonly string[]
  /** Options of the client's pool. */
  readonly pool?: Readonly<Record<string, unknown>>
  readonly store?: MysqlOptions
  /** Has the store speak to the server as to one of MySQL, which understands all of it. */
  readonly asMysql?: boolean
}

export interface Client {
  readonly store: MysqlStore<object>
  own(): Promise<OwnTransaction<object>>
  end(): Promise<void>
}

/** Few enough that the clients and processes of a case leave the server room. */
const connections = 5

const mysql2 = await peer<typeof import('mysql2')>('mysql2')
const mysql2Promise = await peer<typeof import('mysql2/promise')>('mysql2/promise')
const mariadb = await peer<typeof Mariadb>('mariadb')

type Sessions = readonly string[]

export function openClient({ url, client, session = [], pool = {}, store, asMysql }: Opening): Client {
  if (asMysql) return overPromises(url, session, pool, store, disguised)
  if (client === 'mariadb') return overMariadb(url, session, pool, store)
  return client === 'mysql2'
    ? overCallbacks(url, session, pool, store)
    : overPromises(url, session, pool, store)
}

export function promisePool(url: string, session: Sessions = [], more: object = {}): PromisePool {
  const pool = mysql2Promise.createPool({ uri: url, connectionLimit: connections, ...more })
  prepareSessions(pool.pool, session)
  return pool
}

function prepareSessions(pool: CallbackPool | PromisePool['pool'], session: Sessions): void {
  pool.on('connection', (connection: { query(sql: string): unknown }) => {
    for (const statement of session) connection.query(statement)
  })
}

function overPromises(
  url: string,
  session: Sessions,
  more: object,
  options?: MysqlOptions,
  dress: (pool: PromisePool) => void = () => undefined,
): Client {
  const pool = promisePool(url, session, more)
  dress(pool)
  return { store: mysql(pool, options), own: () => ownOfPromises(pool), end: () => pool.end() }
}

/** The answer to what the server is, and the names of what MySQL calls otherwise. */
export function disguised({ pool }: PromisePool): void {
  pool.on('connection', (connection) => {
    const line = connection as unknown as { query(...parameters: unknown[]): unknown }
    const query = line.query.bind(line)
    line.query = (asked, ...rest) => {
      const { sql } = asked as { sql?: string }
      if (sql === undefined) return query(asked, ...rest)
      const told = sql
        .replace("version() like '%MariaDB%'", '0')
        .replace('@@transaction_isolation', '@@tx_isolation')
        .replace('session.transaction_isolation', 'session.tx_isolation')
      // What a pool sends by itself is a command that was made already, with its callback in it.
      if (Object.getPrototypeOf(asked) === Object.prototype)
        return query({ ...(asked as object), sql: told }, ...rest)
      return query(Object.assign(asked as object, { sql: told }), ...rest)
    }
  })
}

async function ownOfPromises(pool: PromisePool): Promise<OwnTransaction<object>> {
  const connection = await pool.getConnection()
  await connection.query('start transaction')
  return {
    tx: connection,
    commit: async () => {
      await connection.query('commit')
      connection.release()
    },
    rollback: async () => {
      await connection.query('rollback')
      connection.release()
    },
  }
}

function overCallbacks(url: string, session: Sessions, more: object, options?: MysqlOptions): Client {
  const pool = mysql2.createPool({ uri: url, connectionLimit: connections, ...more })
  prepareSessions(pool, session)
  return {
    store: mysql(pool, options),
    own: () =>
      new Promise((resolve, reject) => {
        pool.getConnection((error, connection) => {
          if (error) return reject(error)
          const end = async (how: string) => {
            await through(connection, how)
            connection.release()
          }
          through(connection, 'start transaction').then(
            () => resolve({ tx: connection, commit: () => end('commit'), rollback: () => end('rollback') }),
            reject,
          )
        })
      }),
    end: () => new Promise((resolve) => pool.end(() => resolve())),
  }
}

export function mariadbPool(url: string, session: Sessions = [], more: object = {}): Mariadb.Pool {
  const { hostname, port, username, pathname } = new URL(url)
  return mariadb.createPool({
    host: hostname,
    port: Number(port),
    user: username,
    ...(pathname.length > 1 ? { database: pathname.slice(1) } : {}),
    connectionLimit: connections,
    ...(session.length > 0 ? { initSql: [...session] } : {}),
    ...more,
  })
}

function overMariadb(url: string, session: Sessions, more: object, options?: MysqlOptions): Client {
  const pool = mariadbPool(url, session, more)
  const renewalPool = mariadbPool(url, session, { ...more, connectionLimit: 1 })
  const own = async () => {
    const connection = await pool.getConnection()
    await connection.query('start transaction')
    const end = async (how: string) => {
      await connection.query(how)
      await connection.release()
    }
    return { tx: connection, commit: () => end('commit'), rollback: () => end('rollback') }
  }
  return {
    store: mysql(pool, { renewalPool, ...options }),
    own,
    end: async () => {
      await pool.end()
      await renewalPool.end()
    },
  }
}

/** Whether the client of this process takes callbacks: a `tx` does not tell. */
let callbacks = false

/** Sends one statement through whatever the client's work writes through. */
export function through(tx: object, sql: string, values: readonly unknown[] = []): Promise<unknown> {
  // By the protocol for prepared statements: mysql2 escapes the values of `query` in a way that not every `sql_mode` reads.
  const { execute: query } = tx as { execute(...parameters: unknown[]): unknown }
  if (!callbacks) return query.call(tx, sql, [...values]) as Promise<unknown>
  return new Promise((resolve, reject) => {
    query.call(tx, sql, [...values], (error: unknown, rows: unknown) => {
      if (error) reject(error)
      else resolve(rows)
    })
  })
}

let outside: PromisePool | undefined
let users: Client | undefined

function judge(): PromisePool {
  if (outside === undefined) throw new Error('open a store first')
  return outside
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(data: unknown): Promise<OpenedStore<Tx>> {
  const opening = data as Opening
  callbacks = opening.client === 'mysql2'
  // A process of the suite ends when nothing of it is open any more.
  if (outside === undefined) process.once('disconnect', closeOutside)
  // In words: under a default of READ UNCOMMITTED it would see effects before they are there.
  outside ??= promisePool(opening.url, ['set session transaction isolation level read committed'])
  users ??= openClient(opening)
  const { store, end } = openClient(opening)
  return {
    store,
    close: async () => {
      await store.close()
      await end()
    },
  }
}

export async function closeOutside(): Promise<void> {
  const ending = [outside, users]
  outside = undefined
  users = undefined
  await Promise.all(ending.map((one) => one?.end()))
}

/** Creates the tables; the one of effects has no unique constraint, which would hide a duplicate. */
export async function prepare(opening: Opening): Promise<void> {
  const database = new URL(opening.url).pathname.slice(1)
  const whole = new URL(opening.url)
  whole.pathname = ''
  const pool = promisePool(whole.href)
  await pool.query(`create database if not exists ${database}`)
  await pool.query(
    `create table ${database}.effect (\`key\` varchar(1000) character set utf8mb4 collate utf8mb4_bin, payload text character set utf8mb4, generation bigint, index (\`key\`(100))) engine = InnoDB`,
  )
  await pool.end()
  const { store, close } = await open(opening)
  await store.migrating?.migrate()
  await close()
}

/** To the judge the same as its clock moved forward. */
export async function advance(ms: number): Promise<void> {
  await judge().query('update retrysafe.retrysafe_intent set ends_at = ends_at - ?', [Math.round(ms * 1000)])
}

export const ledger: EffectLedger<Tx> = {
  write: async (tx, { key, payload, generation }) => {
    const insert = 'insert into effect (`key`, payload, generation) values (?, ?, ?)'
    const values = [key, payload, generation]
    if (tx === undefined) await judge().execute(insert, values)
    else await through(tx, insert, values)
  },
  read: async (key) => {
    const [rows] = await judge().query('select `key`, payload, generation from effect where `key` = ?', [key])
    return rows as Effect[]
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
  await judge().query(`update retrysafe.retrysafe_intent set ${change} where \`key\` = ? and scope = ?`, [
    Buffer.from(key),
    Buffer.from(scope),
  ])
}
