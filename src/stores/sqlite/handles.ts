/** A connection to SQLite as the user brings it: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import { knownTool } from '../tools/known.js'

/** What is used of a `Database` of better-sqlite3; a type test holds it against the real one. */
export interface BetterSqlite3 {
  readonly inTransaction: boolean
  prepare(text: string): object
  exec(text: string): unknown
  close(): unknown
}

/** What is used of a `DatabaseSync` of `node:sqlite`, Node 22.16 or later. */
export interface NodeSqlite {
  readonly isTransaction: boolean
  readonly isOpen: boolean
  prepare(text: string): object
  exec(text: string): unknown
  close(): unknown
}

/** A connection that {@link sqlite} knows by its shape. */
export type SqliteHandle = BetterSqlite3 | NodeSqlite

/** A value as SQLite holds it. */
export type Value = string | number | bigint | Uint8Array | null
export type Row = Readonly<Record<string, Value>>

export function isHandle(given: unknown): given is SqliteHandle {
  if (typeof given !== 'object' || given === null) return false
  const known = 'inTransaction' in given || 'isTransaction' in given
  return known && ['prepare', 'exec', 'close'].every((name) => name in given)
}

export function checkHandle(given: unknown, what: string): SqliteHandle {
  if (isHandle(given)) return given
  const tool = knownTool(given)
  if (tool !== undefined) {
    throw fail('OPTION_INVALID', {
      detail: `${tool.name} keeps its one connection to itself and would wait inside its transactions: pass { open }, and use ${tool.name} over tx as docs/orms.md has it`,
    })
  }
  throw fail('OPTION_INVALID', {
    detail: `${what} a Database of better-sqlite3, or a DatabaseSync of node:sqlite on Node 22.16 or later`,
  })
}
