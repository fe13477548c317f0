/** `retrysafe list`: records by state. Never an outcome: a screen full of them is no place for bodies. */
import type { RecordState } from '../index.js'
import { type Command, type Given, numberGiven, type Report, textsGiven } from './command.js'
import { recordTable } from './format.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

const defaultLimit = 100

export const list: Command = {
  name: 'list',
  summary: 'records by state, with the generation that a verdict names',
  usage: `  --state STATE      running, released, done, unknown or dead; may be repeated. Default: all
  --limit N          1 to 10000; default 100
${storeUsage}`,
  details:
    'On PostgreSQL only unknown and dead records have an index: any other state reads a large table through.',
  options: { state: { type: 'string', multiple: true }, limit: { type: 'string' }, ...storeOptions },
  run,
}

async function run(given: Given): Promise<Report> {
  const states = textsGiven(given, 'state')
  const limit = numberGiven(given, 'limit') ?? defaultLimit
  const filter = { limit, ...(states.length > 0 && { states: states as readonly RecordState[] }) }
  const records = await withSafe(given, (safe) => safe.list(filter))
  const text = records.length === 0 ? 'There are no such records.' : recordTable(records)
  const more = records.length === limit ? `\nThere may be more: --limit is ${limit}.` : ''
  return { exitCode: 0, json: { records, mayBeMore: records.length === limit }, text: text + more }
}
