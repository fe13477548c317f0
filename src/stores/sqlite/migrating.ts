/** Brings the tables: the migrations that are missing, in order, in one transaction, one process at a time. */
import type { Migrating } from '../../store.js'
import { type SqliteMigration, sqliteMigrations } from '../migrations/sqlite.js'
import type { Connection } from './connection.js'
import { textIn } from './rows.js'
import { type Context, write } from './turns.js'

const createLedger = 'create table if not exists main.retrysafe_migration (name text primary key) strict'

export function migrating(context: Context): Migrating {
  return { migrate: () => write(context, runMissing), sql }
}

function runMissing(connection: Connection): readonly string[] {
  connection.exec(createLedger)
  const ran = connection.rows('select name from main.retrysafe_migration').map((row) => textIn(row, 'name'))
  const missing = sqliteMigrations.filter(({ name }) => !ran.includes(name))
  for (const migration of missing) connection.exec(statementsOf(migration).join(';\n'))
  return missing.map(({ name }) => name)
}

function statementsOf({ name, statements }: SqliteMigration): readonly string[] {
  return [...statements, `insert into main.retrysafe_migration (name) values ('${name}')`]
}

function sql(): string {
  const statements = sqliteMigrations.flatMap(statementsOf)
  return `${['begin immediate', createLedger, ...statements, 'commit'].join(';\n\n')};\n`
}
