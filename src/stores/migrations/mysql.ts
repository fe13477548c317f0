/** The migrations for MySQL and MariaDB, in order. A released one is frozen: a change is a new one. */
import { mysql0001 } from './mysql-0001.js'

export interface Migration {
  readonly name: string
  /** Each may run any number of times, by any number of processes at once: DDL cannot be rolled back here. `schema` is quoted. */
  statements(schema: string): readonly string[]
}

export const migrations: readonly Migration[] = [mysql0001]
