/** `retrysafe sql`: prints the migrations, for tools and people who apply SQL themselves. Needs neither server nor driver. */
import { mysql } from '../stores/mysql.js'
import { postgres } from '../stores/postgres.js'
import { sqlite } from '../stores/sqlite.js'
import type { Command, Given, Report } from './command.js'
import { textGiven } from './command.js'
import { CliError } from './errors.js'
import { kindOf, storeOptions, storeUsage, urlGiven, withSafe } from './store.js'

export const sql: Command = {
  name: 'sql',
  summary: 'prints the SQL of the tables; connects to nothing',
  usage: `  --dialect NAME     postgres, mysql or sqlite; default: the one of the URL
${storeUsage}`,
  details: 'Example: retrysafe sql --dialect postgres --schema billing > migrations/012_retrysafe.sql',
  options: { dialect: { type: 'string' }, ...storeOptions },
  run,
}

const dialects: Readonly<Record<string, (schema: string | undefined) => string>> = {
  postgres: (schema) => postgres({ transaction: unused, query: unused }, named(schema)).sql(),
  mysql: (schema) => mysql(unusedPool, named(schema)).sql(),
  sqlite: () => sqlite({ open: unused }).sql(),
}

function named(schema: string | undefined): { schema?: string } {
  return schema === undefined ? {} : { schema }
}

async function run(given: Given): Promise<Report> {
  const text = await textOf(given)
  return { exitCode: 0, json: { sql: text }, text: text.trimEnd() }
}

async function textOf(given: Given): Promise<string> {
  const asked = textGiven(given, 'dialect')
  if (asked === undefined && textGiven(given, 'store') !== undefined) return ofModule(given)
  const dialect = asked ?? kindOf(urlGiven(given) ?? '')?.store
  const write = Object.hasOwn(dialects, dialect ?? '') ? dialects[dialect ?? ''] : undefined
  if (write !== undefined) return write(textGiven(given, 'schema'))
  if (asked !== undefined)
    throw new CliError('USAGE', `--dialect is one of: ${Object.keys(dialects).join(', ')}`)
  throw new CliError(
    'STORE_NOT_NAMED',
    'no dialect is named',
    `Pass --dialect ${Object.keys(dialects).join(' or ')}.`,
  )
}

function ofModule(given: Given): Promise<string> {
  return withSafe(given, async (_, { name, migrating }) => {
    if (migrating === undefined) throw new CliError('ABILITY_MISSING', `the ${name} store has no SQL`)
    return migrating.sql()
  })
}

/** The SQL is written without a server; a store is made from a handle all the same. */
function unused(): never {
  throw new Error('this handle is never asked')
}

const unusedPool = { getConnection: unused, query: unused, execute: unused, promise: unused }
