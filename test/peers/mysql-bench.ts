/** What every test of the MySQL store starts from: a server of its own, a store on it, and a table of effects without any constraint. */
import { randomUUID } from 'node:crypto'
import type { Pool, PoolConnection, PoolOptions, RowDataPacket } from 'mysql2/promise'
import { createPool } from 'mysql2/promise'
import type { BeginRequest, ClaimRequest, OpenTransaction, Save } from '../../dist/store.js'
import { type MysqlOptions, type MysqlStore, mysql } from '../../dist/stores/mysql.js'
import { type Mariadb, startMariadb } from '../../servers/mariadb.js'

export type Tx = Pick<Pool, 'query' | 'execute'>

export interface Bench {
  readonly server: Mariadb
  readonly url: string
  readonly store: MysqlStore<Tx>
  /** A store of its own on a pool of its own, over the same tables. */
  another(pool?: PoolOptions, options?: MysqlOptions): { pool: Pool; store: MysqlStore<Tx> }
  effects(key: string): Promise<number>
  /** Runs a statement outside the store. */
  sql(text: string, values?: unknown[]): Promise<RowDataPacket[]>
  /** A connection in a transaction that the test has opened. */
  connection(): Promise<PoolConnection>
  close(): Promise<void>
}

export async function openBench(options: readonly string[] = []): Promise<Bench> {
  const server = await startMariadb(options)
  const url = `${server.url}/app`
  const opened: { pool: Pool; store: MysqlStore<Tx> }[] = []
  const first = createPool({ uri: server.url })
  await first.query('create database app')
  await first.query('create table app.effect (`key` varchar(255), note text) engine = InnoDB')
  await first.end()
  const admin = createPool({ uri: url })
  const another: Bench['another'] = (pool = {}, more = {}) => {
    const made = createPool({ uri: url, ...pool })
    const one = { pool: made, store: mysql(made, more) }
    opened.push(one)
    return one
  }
  const { store } = another()
  await store.migrate()
  async function sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await admin.query<RowDataPacket[]>(text, values)
    return rows
  }
  return {
    server,
    url,
    store,
    another,
    sql,
    effects: async (key) =>
      Number((await sql('select count(*) as n from effect where `key` = ?', [key]))[0]?.n),
    connection: () => admin.getConnection(),
    close: async () => {
      await Promise.all(opened.map((one) => one.store.close()))
      await Promise.all(
        [admin, ...opened.map((one) => one.pool)].map((one) => one.end().catch(() => undefined)),
      )
      await server.stop()
    },
  }
}

export const fingerprint = Buffer.from('fingerprint-1')
export const outcome = Buffer.from([0, 1, 2, 253, 254, 255])
export const wish: Save = { fingerprint, outcome, retainMs: 3_600_000, undoWork: false }

let drawn = 0

/** A key nobody else uses. */
export function freshKey(): string {
  drawn += 1
  return `key-${drawn}-${randomUUID()}`
}

export function beginRequest(key: string, more: Partial<BeginRequest> = {}): BeginRequest {
  return {
    identity: { key, scope: 'tenant' },
    owner: randomUUID(),
    fingerprint: () => fingerprint,
    timeoutMs: 20_000,
    callerNowMs: Date.now(),
    ...more,
  }
}

export function claimRequest(key: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    identity: { key, scope: 'tenant' },
    owner: randomUUID(),
    fingerprint,
    leaseMs: 30_000,
    callerNowMs: Date.now(),
    ...more,
  }
}

/** One effect, through the work's own `tx`. */
export async function addEffect(
  { tx }: Pick<OpenTransaction<Tx>, 'tx'>,
  key: string,
  note = '',
): Promise<void> {
  await tx.query('insert into effect (`key`, note) values (?, ?)', [key, note])
}

/** A whole transaction-mode attempt; what it found, or how its save was answered. */
export async function attempt(
  store: MysqlStore<Tx>,
  key: string,
  more: Partial<BeginRequest> = {},
): Promise<string> {
  const open = await store.transactions.begin(beginRequest(key, more))
  if (!open.granted || open.seen?.live) {
    await open.rollback()
    return open.seen?.state === 'done' ? 'replayed' : 'held'
  }
  await addEffect(open, key)
  const { kind } = await open.save(wish)
  await open.rollback()
  return kind
}

export const identityOf = (key: string) => ({ key, scope: 'tenant' })
