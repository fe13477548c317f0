/** The migrations for SQLite, in order. A released one is frozen: a change is a new one. */
import { sqlite0001 } from './sqlite-0001.js'

export interface SqliteMigration {
  readonly name: string
  readonly statements: readonly string[]
}

export const sqliteMigrations: readonly SqliteMigration[] = [sqlite0001]
