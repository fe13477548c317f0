/** Brings the tables: the migrations that are missing, in order, in one transaction, one process at a time. */
import type { Migrating } from '../../store.js'
import { type Migration, migrations } from '../migrations/postgres.js'
import { type Call, type Connection, type Connections, call, type Result } from './driver.js'
import { lockNumber } from './identity.js'
import { textAt } from './rows.js'
import { named } from './statements.js'

export function migrating(connections: Connections, schema: string): Migrating {
  return { migrate: () => migrate(connections, schema), sql: () => sqlOf(schema) }
}

async function migrate(connections: Connections, schema: string): Promise<readonly string[]> {
  const connection = await connections.acquire()
  try {
    const ran = await runMissing(connection, schema)
    connection.release()
    return ran
  } catch (error) {
    // Half a migration is rolled back with its connection.
    connection.destroy()
    throw error
  }
}

async function runMissing(connection: Connection, schema: string): Promise<readonly string[]> {
  // READ COMMITTED, so that what the process before us has committed is seen once the lock is ours.
  await fly(connection, [plain('begin isolation level read committed read write')])
  const lock = lockNumber(schema, { key: 'migrations', scope: '' })
  await fly(connection, [call(named('select pg_advisory_xact_lock($1::bigint)::text'), lock)])
  const [found] = await fly(connection, [call(named('select to_regnamespace($1) is null'), `"${schema}"`)])
  // CREATE SCHEMA asks for a right on the database even where IF NOT EXISTS has nothing to create.
  if (textAt(found?.rows[0], 0) === 't') await fly(connection, [plain(createSchema(schema))])
  const [, done] = await fly(connection, [
    plain(createLedger(schema)),
    plain(`select name from "${schema}".migration`),
  ])
  const names = new Set(done?.rows.map((row) => textAt(row, 0)))
  const missing = migrations.filter(({ name }) => !names.has(name))
  for (const migration of missing) await fly(connection, statementsOf(migration, schema).map(plain))
  await fly(connection, [plain('commit')])
  return missing.map(({ name }) => name)
}

async function fly(connection: Connection, calls: readonly Call[]): Promise<readonly Result[]> {
  const { results, failure } = await connection.flight(calls)
  if (failure !== undefined) throw failure.error
  return results
}

function plain(text: string): Call {
  return call(named(text))
}

function createSchema(schema: string): string {
  return `create schema if not exists "${schema}"`
}

function createLedger(schema: string): string {
  return `create table if not exists "${schema}".migration (
  name text collate "C" primary key, applied_at timestamptz not null default now())`
}

function statementsOf(migration: Migration, schema: string): string[] {
  return [
    ...migration.statements(`"${schema}"`),
    `insert into "${schema}".migration (name) values ('${migration.name}')`,
  ]
}

function sqlOf(schema: string): string {
  const statements = migrations.flatMap((migration) => statementsOf(migration, schema))
  return `${['begin', createSchema(schema), createLedger(schema), ...statements, 'commit'].join(';\n\n')};\n`
}
