/** `retrysafe sql`: prints the migrations, for tools and people who apply SQL themselves. Needs neither server nor driver. */
import { postgres } from '../stores/postgres.js'
import type { Command, Given, Report } from './command.js'
import { textGiven } from './command.js'
import { CliError } from './errors.js'
import { schemeOf, storeOptions, storeUsage, urlGiven, withSafe } from './store.js'

export const sql: Command = {
  name: 'sql',
  summary: 'prints the SQL of the tables; connects to nothing',
  usage: `  --dialect NAME     postgres; default: the one of the URL
${storeUsage}`,
  details: 'Example: retrysafe sql --dialect postgres --schema billing > migrations/012_retrysafe.sql',
  options: { dialect: { type: 'string' }, ...storeOptions },
  run,
}

const dialects: Readonly<Record<string, (schema: string | undefined) => string>> = {
  postgres: (schema) =>
    postgres({ transaction: unused, query: unused }, schema === undefined ? {} : { schema }).sql(),
}

const dialectOf: Readonly<Record<string, string>> = { 'postgres:': 'postgres', 'postgresql:': 'postgres' }

async function run(given: Given): Promise<Report> {
  const text = await textOf(given)
  return { exitCode: 0, json: { sql: text }, text: text.trimEnd() }
}

async function textOf(given: Given): Promise<string> {
  const named = textGiven(given, 'dialect')
  if (named === undefined && textGiven(given, 'store') !== undefined) return ofModule(given)
  const dialect = named ?? dialectOf[schemeOf(urlGiven(given) ?? '')]
  const write = dialects[dialect ?? '']
  if (write !== undefined) return write(textGiven(given, 'schema'))
  if (named !== undefined)
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
async function unused(): Promise<never> {
  throw new Error('this handle is never asked')
}
