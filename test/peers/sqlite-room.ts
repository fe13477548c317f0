/** What the tests of SQLite start with: a file, connections to it, and other processes on it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { peer } from './processes/peer.js'
import type { Order, Told } from './processes/sqlite-rival.js'
import type { Opening } from './processes/sqlite-store.js'

const rivalScript = join(import.meta.dirname, '../../build/test/peers/processes/sqlite-rival.js')
const { default: BetterSqlite3 } = await peer<{ default: typeof Database }>('better-sqlite3')

export interface File {
  readonly path: string
  readonly opening: Opening
  /** The connection that is open from the start. */
  readonly only: Database.Database
  connect(options?: Database.Options): Database.Database
  effects(key: string): number
  close(): Promise<void>
}

/** A file with the table of effects, in WAL mode. */
export function newFile(): File {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-sqlite-'))
  const path = join(folder, 'records.db')
  const opened: Database.Database[] = []
  const connect: File['connect'] = (options) => {
    const db = new BetterSqlite3(path, options)
    opened.push(db)
    return db
  }
  const own = connect()
  own.pragma('journal_mode = wal')
  own.exec('create table effect (key text, payload text, generation integer)')
  const count = own.prepare<[string], number>('select count(*) from effect where key = ?').pluck()
  return {
    path,
    only: own,
    opening: { file: path, driver: 'better-sqlite3' },
    connect,
    effects: (key) => count.get(key) ?? 0,
    close: async () => {
      for (const db of opened) db.close()
      rmSync(folder, { recursive: true })
    },
  }
}

export function memoryDb(): Database.Database {
  return new BetterSqlite3(':memory:')
}

export interface Rival {
  readonly child: ChildProcess
  /** The next thing that it tells. */
  next(): Promise<Told>
  readonly exit: Promise<unknown>
}

export function startRival(order: Order): Rival {
  const child = fork(rivalScript, { execArgv: [] })
  const told: Told[] = []
  const waiting: ((one: Told) => void)[] = []
  child.on('message', (one: Told) => {
    const wake = waiting.shift()
    if (wake === undefined) told.push(one)
    else wake(one)
  })
  child.send(order)
  return {
    child,
    next: async () => told.shift() ?? new Promise((resolve) => waiting.push(resolve)),
    exit: once(child, 'exit'),
  }
}
