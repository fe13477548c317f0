/**
 * The store suite's harness for SQLite: loaded by the test itself, by the processes that it starts, and by the Node versions that have `node:sqlite`.
 */
import { rmSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import {
  type Effect,
  type EffectLedger,
  type OpenedStore,
  type OwnTransaction,
  type SqliteOptions,
  type SqliteStore,
  type StoreHarness,
  sqlite,
  storeSuite,
} from '../../processes/own-sqlite.js'
import { peer } from './peer.js'

export type Driver = 'better-sqlite3' | 'node:sqlite'

/** What both drivers have, as far as the tests use it. */
export interface Db {
  readonly inTransaction: boolean
  readonly isTransaction: boolean
  readonly isOpen: boolean
  prepare(text: string): {
    all(...values: unknown[]): unknown[]
    get(...values: unknown[]): unknown
    run(...values: unknown[]): unknown
    iterate(...values: unknown[]): IterableIterator<unknown>
  }
  exec(text: string): unknown
  close(): unknown
}

/** How a store is opened; a process is sent the same. */
export interface Opening {
  readonly file: string
  readonly driver: Driver
  /** One connection for everything, as a program that passes in its own. */
  readonly shared?: boolean
  readonly options?: SqliteOptions
}

interface Module {
  readonly DatabaseSync: new (file: string) => Db
}

/** By name, because this Node's types do not know of it. */
const nodeModule: string = 'node:sqlite'

export async function connector(driver: Driver): Promise<(file: string) => Db> {
  if (driver === 'node:sqlite') {
    const { DatabaseSync } = (await import(nodeModule)) as Module
    return (file) => new DatabaseSync(file)
  }
  const { default: Database } = await peer<{ default: typeof BetterSqlite3 }>('better-sqlite3')
  return (file) => new Database(file) as unknown as Db
}

let connect: ((file: string) => Db) | undefined
let outside: Db | undefined
let file = ''

function outsideDb(): Db {
  if (outside === undefined) throw new Error('open a store first')
  return outside
}

function connected(): Db {
  if (connect === undefined) throw new Error('open a store first')
  return connect(file)
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(data: unknown): Promise<OpenedStore<Db> & { readonly store: SqliteStore<Db> }> {
  const opening = data as Opening
  connect ??= await connector(opening.driver)
  file = opening.file
  outside ??= waiting(connected())
  if (opening.shared !== true) {
    const store = sqlite({ open: connected }, opening.options)
    return { store, close: store.close }
  }
  const db = connected()
  const store = sqlite(db, opening.options)
  return { store, close: () => void db.close() }
}

/** For the harness itself: it may wait in SQLite, because nothing of its own process has the file then. */
function waiting(db: Db): Db {
  db.exec('pragma busy_timeout = 5000')
  return db
}

/** Creates the tables; the one of effects has no unique constraint, which would hide a duplicate. */
export async function prepare(opening: Opening): Promise<void> {
  connect ??= await connector(opening.driver)
  const db = connect(opening.file)
  db.exec('pragma journal_mode = wal')
  db.exec('create table if not exists effect (key text, payload text, generation integer)')
  db.close()
  const { store, close } = await open(opening)
  await store.migrate()
  await close()
}

export function closeOutside(): void {
  outside?.close()
  outside = undefined
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
}

/** To the judge the same as its clock moved forward. */
export function advance(ms: number): void {
  outsideDb().prepare('update retrysafe_intent set ends_at = ends_at - ?').run(ms)
}

export const ledger: EffectLedger<Db> = {
  write: (tx, { key, payload, generation }) => {
    const insert = 'insert into effect (key, payload, generation) values (?, ?, ?)'
    ;(tx ?? outsideDb()).prepare(insert).run(key, payload, generation)
  },
  read: (key) => {
    const rows = outsideDb().prepare('select key, payload, generation from effect where key = ?').all(key)
    return (rows as Effect[]).map((row) => ({ ...row }))
  },
}

export function own(): OwnTransaction<Db> {
  const tx = connected()
  tx.exec('begin')
  const end = (how: string) => {
    tx.exec(how)
    tx.close()
  }
  return { tx, commit: () => end('commit'), rollback: () => end('rollback') }
}

export async function plant(
  { key, scope }: { key: string; scope: string },
  shape: 'dead' | 'steps',
): Promise<void> {
  const change = shape === 'dead' ? 'state = 5' : `steps = x'22'`
  outsideDb().prepare(`update retrysafe_intent set ${change} where key = ? and scope = ?`).run(key, scope)
}

const idleTimeout = 'there is no server that could end it: the connection goes with its process'

export function harnessFor(opening: Opening): StoreHarness<Db> {
  return {
    open: () => open(opening),
    advance,
    ledger,
    own,
    plant,
    oneWriter: true,
    lacks: {
      idleTimeout,
      ...(opening.shared && {
        transactions: 'between BEGIN and COMMIT nothing may be waited for on a shared connection',
      }),
    },
    processes: {
      module: new URL('../../../build/test/peers/processes/sqlite-store.js', rootOf(import.meta.url)),
      data: opening,
    },
  }
}

/** Races whose work waits for nothing but promises that are there already: what a shared connection can run as well. */
const ofOneBreath = /concurrent attempts|attempts in .* among four processes|intents in/

export function casesFor(opening: Opening): ReturnType<typeof storeSuite> {
  return casesOf(harnessFor(opening), opening)
}

export function casesOf<Tx extends object>(
  harness: StoreHarness<Tx>,
  opening: Pick<Opening, 'shared'>,
): ReturnType<typeof storeSuite> {
  const cases = storeSuite(harness)
  if (!opening.shared) return cases
  const races = storeSuite({ ...harness, lacks: { idleTimeout } }).filter(({ name }) =>
    ofOneBreath.test(name),
  )
  const names = new Set(races.map(({ name }) => name))
  return [...cases.filter(({ name }) => !names.has(name)), ...races]
}

/** This file is loaded from its source by vitest, and from `build/` by the processes. */
function rootOf(url: string): string {
  return url.replace('/build/test/peers/', '/test/peers/')
}
