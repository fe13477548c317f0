/** What every test of the PostgreSQL store starts from: a database of its own, and a table of effects without any constraint. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { type PostgresOptions, type PostgresStore, postgres } from 'retrysafe/postgres'
import type { BeginRequest, ClaimRequest, OpenTransaction, Save } from '../../dist/store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'

export type Tx = { readonly query: pg.Pool['query'] }

export interface Bench {
  readonly database: FreshDatabase
  readonly pool: pg.Pool
  readonly store: PostgresStore<Tx>
  /** A store of its own on a pool of its own, over the same tables. */
  another(options?: PostgresOptions, pool?: pg.PoolConfig): { pool: pg.Pool; store: PostgresStore<Tx> }
  effects(key: string): Promise<number>
  /** Runs a statement outside the store. */
  sql(text: string, values?: unknown[]): Promise<pg.QueryResult>
  close(): Promise<void>
}

/** `options` are those of the first store; `pool` of its pool. */
export async function openBench(options: PostgresOptions = {}, config: pg.PoolConfig = {}): Promise<Bench> {
  const database = await freshDatabase()
  const opened: { pool: pg.Pool; store: PostgresStore<Tx> }[] = []
  const another: Bench['another'] = (more = options, poolConfig = config) => {
    const pool = new pg.Pool({ connectionString: database.connectionString, ...poolConfig })
    const store = postgres(pool, more)
    opened.push({ pool, store })
    return { pool, store }
  }
  const admin = new pg.Pool({ connectionString: database.connectionString, max: 4 })
  admin.on('error', () => {})
  const { pool, store } = another()
  await store.migrate()
  // No unique constraint: it would hide the duplicate that is hunted.
  await admin.query('create table effect (key text, note text)')
  return {
    database,
    pool,
    store,
    another,
    effects: async (key) => {
      const { rows } = await admin.query('select count(*)::int as n from effect where key = $1', [key])
      return rows[0].n
    },
    sql: (text, values) => admin.query(text, values),
    close: async () => {
      await Promise.all(opened.map((one) => one.store.close()))
      await Promise.all([admin, ...opened.map((one) => one.pool)].map((one) => one.end()))
      await database.drop()
    },
  }
}

export const fingerprint = Buffer.from('fingerprint-1')
export const outcome = Buffer.from([0, 1, 2, 253, 254, 255])

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

export const wish: Save = { fingerprint, outcome, retainMs: 3_600_000, undoWork: false }

/** One effect, through the work's own `tx`. */
export function addEffect(open: OpenTransaction<Tx>, key: string, note = ''): Promise<pg.QueryResult> {
  return open.tx.query('insert into effect (key, note) values ($1, $2)', [key, note])
}

/** A whole transaction-mode attempt; what it found, or how its save was answered. */
export async function attempt(store: PostgresStore<Tx>, key: string, more: Partial<BeginRequest> = {}) {
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

/** Waits until the condition holds. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resume) => setTimeout(resume, 5))
}

/** Moves the record's end into the past, as if time had gone by. */
export async function expire(bench: Bench, key: string): Promise<void> {
  await bench.sql(
    `update retrysafe.intent set ends_at = clock_timestamp() - interval '10 minutes' where key = $1`,
    [key],
  )
}
