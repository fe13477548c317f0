/**
 * Brings the tables. DDL commits by itself here, so that there is no transaction to put a migration into: each statement may run any number of times, by any number of
 * processes at once, and the row that says it was done comes last.
 */
import type { Migrating } from '../../store.js'
import { migrations } from '../migrations/mysql.js'
import type { Connection } from './driver.js'
import { text } from './literals.js'
import { byItself, type Ours, onConnection } from './once.js'
import { integerAt, textAt } from './rows.js'

export function migrating(ours: Ours): Migrating {
  const schema = `\`${ours.schema}\``
  return { migrate: () => onConnection(ours, migrate), sql }

  async function migrate(connection: Connection): Promise<readonly string[]> {
    const { rows } = await connection.run(
      `select count(*) from information_schema.schemata where schema_name = '${ours.schema}'`,
    )
    // CREATE DATABASE asks for a right on the server even where IF NOT EXISTS has nothing to create.
    if (integerAt(rows[0], 0) === 0) await connection.run(createDatabase())
    await connection.run(createLedger())
    const done = await connection.run(`select hex(name) from ${schema}.retrysafe_migration`)
    const names = new Set(done.rows.map((row) => Buffer.from(textAt(row, 0), 'hex').toString('utf8')))
    const ran: string[] = []
    for (const { name, statements } of migrations) {
      if (names.has(name)) continue
      for (const statement of statements(schema)) await connection.run(statement)
      // Of several processes one is told that it ran it.
      if ((await byItself(ours, connection, () => connection.run(record(name)))).affected > 0) ran.push(name)
    }
    return ran
  }

  function sql(): string {
    const statements = migrations.flatMap((one) => [...one.statements(schema), record(one.name)])
    return `${[createDatabase(), createLedger(), ...statements].join(';\n\n')};\n`
  }

  function createDatabase(): string {
    return `create database if not exists ${schema}`
  }

  function createLedger(): string {
    return `create table if not exists ${schema}.retrysafe_migration (
  name varbinary(100) not null primary key, applied_at timestamp not null default current_timestamp
) engine = InnoDB`
  }

  function record(name: string): string {
    return `insert ignore into ${schema}.retrysafe_migration (name) values (${text(name)})`
  }
}
