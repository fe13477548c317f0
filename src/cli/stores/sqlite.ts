/** A file of SQLite, over better-sqlite3 or, where the project has none, the `node:sqlite` of Node 22.16 and later. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BetterSqlite3, type NodeSqlite, type SqliteHandle, sqlite } from '../../stores/sqlite.js'
import { installedDriver } from '../driver.js'
import { CliError } from '../errors.js'
import type { OpenedStore, Target } from './target.js'

/** `sqlite:orders.db`, `sqlite:///var/orders.db`, `file:///var/orders.db`, or a path that ends as such files do. */
export function isSqlitePath(url: string): boolean {
  return /\.(?:db|sqlite3?)$/i.test(url) && !url.includes('://')
}

const nameTheFile = 'Name the file of the service, or run `retrysafe migrate`.'

/** Opening a file that is not there would make an empty one, which answers every question as if nothing had ever been claimed. */
export async function openSqlite({ url, cwd, mayCreate }: Target): Promise<OpenedStore> {
  if (url.includes(':memory:'))
    throw new CliError('STORE_UNAVAILABLE', 'a database in memory is in its own process only', nameTheFile)
  const file = fileOf(url, cwd)
  if (!mayCreate && !existsSync(file))
    throw new CliError('STORE_UNAVAILABLE', `there is no file ${file}`, nameTheFile)
  const open = await opener(cwd)
  // What `migrate` opens is put into WAL mode; what is only looked at stays as it is, so that the doctor sees it.
  if (mayCreate) return { store: sqlite({ open: () => open(file) }), close: async () => undefined }
  const db = open(file)
  return { store: sqlite(db), close: async () => void db.close() }
}

function fileOf(url: string, cwd: string): string {
  if (url.startsWith('file://')) return fileURLToPath(url)
  return resolve(cwd, url.replace(/^(?:sqlite|file):(?:\/\/(?=\/))?/i, ''))
}

async function opener(cwd: string): Promise<(file: string) => SqliteHandle> {
  try {
    const { module: Database } = await installedDriver<new (file: string) => BetterSqlite3>(cwd, [
      'better-sqlite3',
    ])
    return (file) => new Database(file)
  } catch (missing) {
    const { DatabaseSync } = await builtIn(missing)
    return (file) => new DatabaseSync(file)
  }
}

async function builtIn(missing: unknown): Promise<{ DatabaseSync: new (file: string) => NodeSqlite }> {
  try {
    // By a name of its own: the types of Node 20 know no such module.
    const name = 'node:sqlite'
    return await import(name)
  } catch {
    throw missing
  }
}
