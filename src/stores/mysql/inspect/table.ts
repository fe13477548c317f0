/** The store's own table: whether it is there, open to this account, bytewise unique, and kept by InnoDB. */
import type { Finding } from '../../../store.js'
import { finding, fine, judgeMigrations, missingTables } from '../../findings.js'
import { migrations } from '../../migrations/mysql.js'
import type { Connection } from '../driver.js'
import { errno } from '../errors.js'
import { integerAt, textAt } from '../rows.js'

const denied = new Set([1044, 1045, 1142, 1143])
const absent = new Set([1049, 1146])

export async function inspectTable(connection: Connection, schema: string): Promise<readonly Finding[]> {
  const table = `\`${schema}\`.retrysafe_intent`
  const look = await numberOf(connection, `select 1 from ${table} limit 0`)
  if (absent.has(look)) return [missingTables(`there is no retrysafe_intent in \`${schema}\``)]
  const rights = await inspectRights(connection, table)
  if (rights.level !== 'ok' && denied.has(look)) return [rights]
  return [
    await migrated(connection, schema),
    rights,
    await uniqueIndex(connection, schema),
    await sweepIndex(connection, schema),
    await bytewise(connection, schema),
    await engine(connection, schema),
  ]
}

/** The number of the server's refusal, 0 where it had none. */
async function numberOf(connection: Connection, text: string): Promise<number> {
  try {
    await connection.run(text)
    return 0
  } catch (error) {
    const number = errno(error)
    if (number === 0 || !(denied.has(number) || absent.has(number))) throw error
    return number
  }
}

/** EXPLAIN asks for the rights of the statement that it explains, and runs nothing. */
async function inspectRights(connection: Connection, table: string): Promise<Finding> {
  const id = 'rights'
  const statements = {
    SELECT: `select * from ${table} where 1 = 0`,
    INSERT: `insert into ${table} (\`key\`, scope, state, owner, generation, attempts, ends_at, fingerprint) values (0x00, 0x00, 1, 0x00, 0, 0, 0, 0x00)`,
    UPDATE: `update ${table} set attempts = 0 where \`key\` = 0x00 and scope = 0x00`,
    DELETE: `delete from ${table} where \`key\` = 0x00 and scope = 0x00`,
  }
  const lacking: string[] = []
  for (const [right, text] of Object.entries(statements)) {
    if (denied.has(await numberOf(connection, `explain ${text}`))) lacking.push(right)
  }
  if (lacking.length === 0) return fine(id, 'this account may select, insert, update and delete')
  const means = 'What needs it is refused by the database, and callers get 503.'
  const advice = `grant select, insert, update, delete on ${table} to …`
  return finding('error', id, `this account lacks ${lacking.join(', ')}`, means, advice)
}

async function migrated(connection: Connection, schema: string): Promise<Finding> {
  const id = 'migrations'
  const text = `select hex(name) from \`${schema}\`.retrysafe_migration order by name`
  if (denied.has(await numberOf(connection, text))) {
    const means =
      'Whether the tables fit this version cannot be told; to work, the account needs no such right.'
    const advice = `Ask as the owner of the tables, or grant select on \`${schema}\`.retrysafe_migration.`
    return finding('note', id, 'this account may not read which migrations ran', means, advice)
  }
  const { rows } = await connection.run(text)
  const ran = rows.map((row) => Buffer.from(textAt(row, 0), 'hex').toString())
  return judgeMigrations(
    migrations.map(({ name }) => name),
    ran,
  )
}

/** Whole columns: an index over a prefix would take two keys for one. */
async function uniqueIndex(connection: Connection, schema: string): Promise<Finding> {
  const id = 'unique-index'
  const { rows } =
    await connection.run(`select count(*), count(case when column_name in ('key', 'scope') then 1 end)
    from information_schema.statistics where table_schema = '${schema}' and table_name = 'retrysafe_intent'
      and index_name = 'PRIMARY' and non_unique = 0 and sub_part is null`)
  if (integerAt(rows[0], 0) === 2 && integerAt(rows[0], 1) === 2)
    return fine(id, 'the primary key is key and scope')
  const means =
    'Nothing decides between two attempts of one key: both may run. Every promise of the store rests on this index.'
  const advice = `Stop writing, remove duplicate rows of (key, scope), then: alter table \`${schema}\`.retrysafe_intent add primary key (\`key\`, scope)`
  return finding('error', id, 'the primary key is not key and scope', means, advice)
}

async function sweepIndex(connection: Connection, schema: string): Promise<Finding> {
  const id = 'indexes'
  const { rows } = await connection.run(`select count(*) from information_schema.statistics
    where table_schema = '${schema}' and table_name = 'retrysafe_intent' and column_name = 'sweep_at' and seq_in_index = 1`)
  if (integerAt(rows[0], 0) > 0) return fine(id, 'the index of the sweeper is there')
  const means = 'The sweeper reads, and locks, the whole table each time.'
  const advice = `alter table \`${schema}\`.retrysafe_intent add index sweep (sweep_at)`
  return finding('warn', id, 'the index of the sweeper is missing', means, advice)
}

async function bytewise(connection: Connection, schema: string): Promise<Finding> {
  const id = 'collation'
  const { rows } = await connection.run(`select count(*) from information_schema.columns
    where table_schema = '${schema}' and table_name = 'retrysafe_intent' and column_name in ('key', 'scope')
      and data_type = 'varbinary'`)
  if (integerAt(rows[0], 0) === 2) return fine(id, 'key and scope are compared by bytes')
  const means = 'The database takes keys for equal that are not: one caller gets the reply of another.'
  return finding(
    'error',
    id,
    'key or scope is no varbinary',
    means,
    'Give both their type again, as `retrysafe sql` has it.',
  )
}

async function engine(connection: Connection, schema: string): Promise<Finding> {
  const id = 'engine'
  const { rows } = await connection.run(`select engine from information_schema.tables
    where table_schema = '${schema}' and table_name = 'retrysafe_intent'`)
  const name = textAt(rows[0], 0)
  if (name.toLowerCase() === 'innodb') return fine(id, 'the table is kept by InnoDB')
  const means =
    'Without transactions a record is there before its work has committed, and stays when it rolls back.'
  return finding(
    'error',
    id,
    `the table is kept by ${name}`,
    means,
    `alter table \`${schema}\`.retrysafe_intent engine = InnoDB`,
  )
}
