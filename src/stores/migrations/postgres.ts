/** The migrations for PostgreSQL, in order. A released one is frozen: a change is a new one. */
import { postgres0001 } from './postgres-0001.js'

export interface Migration {
  readonly name: string
  /** `schema` is quoted. */
  statements(schema: string): readonly string[]
}

export const migrations: readonly Migration[] = [postgres0001]
