/** Looks at the file and at the settings that the promise rests on. */
import type { Finding, Inspecting } from '../../store.js'
import { finding, fine } from '../findings.js'
import { sqliteMigrations } from '../migrations/sqlite.js'
import type { Connection } from './connection.js'
import { integerIn } from './rows.js'
import { fileOf, fullSync, journalOf } from './sources.js'
import { statements } from './statements.js'
import { type Context, read, write } from './turns.js'

export function inspecting(context: Context): Inspecting {
  return { inspect }

  async function inspect(): Promise<readonly Finding[]> {
    const findings = await read(context, (connection) => lookAt(context, connection))
    if (isBroken(findings)) return findings
    const writing = await writable(context)
    if (isBroken([writing])) return [...findings, writing]
    return [...findings, writing, await read(context, unfinished)]
  }
}

function lookAt(context: Context, connection: Connection): readonly Finding[] {
  return [version(connection), place(connection), sync(context, connection), tables(connection)]
}

function isBroken(findings: readonly Finding[]): boolean {
  return findings.some(({ level }) => level === 'error')
}

/** What may only be read answers every look, and so does a file whose list of migrations says more than it has. */
async function writable(context: Context): Promise<Finding> {
  try {
    await write(context, ({ rows }) => rows(statements.proveWritable))
    return fine('writable', 'the file takes writes')
  } catch (error) {
    const { message, cause } = error as Error
    const why = cause instanceof Error ? cause.message : message
    const means = 'No claim can be made and no outcome kept: callers get 503.'
    const advice =
      'Run this as the account of the service; let it write the file and its folder, and bring back what is missing.'
    return finding('error', 'writable', why, means, advice)
  }
}

function version(connection: Connection): Finding {
  return fine('sqlite-version', String(connection.rows('select sqlite_version() as version')[0]?.version))
}

function place(connection: Connection): Finding {
  const journal = journalOf(connection)
  if (fileOf(connection) === '') {
    const means = 'Every record is gone when the process ends, and with it what was done.'
    return finding('warn', 'journal-mode', 'in memory', means, 'Use a file wherever retries must be safe.')
  }
  if (journal === 'wal') return fine('journal-mode', 'wal')
  const means = 'Readers make COMMIT fail, and the store refuses to work.'
  return finding('error', 'journal-mode', journal, means, 'Run "pragma journal_mode = wal" on the file once.')
}

const levels = ['off', 'normal', 'full', 'extra']

function sync({ source, synced }: Context, connection: Connection): Finding {
  const level = connection.pragma('main.synchronous')
  const name = levels[level] ?? String(level)
  if (level >= fullSync) return fine('synchronous', name)
  if (source.shared && synced)
    return fine('synchronous', `${name} on the connection, full for the store's own commits`)
  const means =
    'A power cut may take the last commits, record and writes together; a killed process loses nothing.'
  return finding(
    'warn',
    'synchronous',
    name,
    means,
    'Leave `durable` at true, or set "pragma synchronous = full".',
  )
}

function tables(connection: Connection): Finding {
  const [there] = connection.rows(
    `select count(*) as tables from main.sqlite_schema where name = 'retrysafe_migration'`,
  )
  const ran =
    integerIn(there, 'tables') === 0
      ? 0
      : integerIn(connection.rows('select count(*) as ran from main.retrysafe_migration')[0], 'ran')
  if (ran >= sqliteMigrations.length) return fine('migrations', `${ran} of ${sqliteMigrations.length}`)
  const means = 'The tables are missing or older than this version.'
  const found = `${ran} of ${sqliteMigrations.length}`
  return finding('error', 'migrations', found, means, 'Run store.migrate(), or apply store.sql().')
}

function unfinished(connection: Connection): Finding {
  const rows = connection.rows(statements.list('state in (4, 5)'), { limit: 1 })
  if (rows.length === 0) return fine('unfinished', 'none that waits for an operator')
  const means = 'Their keys are refused until somebody decides.'
  return finding(
    'note',
    'unfinished',
    'unknown or dead records',
    means,
    'Look at them with `retrysafe list`.',
  )
}
