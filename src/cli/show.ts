/** `retrysafe show`: one record; its outcome only when it is asked for, because it may hold what callers were told in confidence. */
import { type Command, type Given, isGiven, type Report } from './command.js'
import { jsonText, outcomeJson, recordLines } from './format.js'
import { recordGiven, recordOptions, recordUsage } from './record.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

export const show: Command = {
  name: 'show',
  summary: 'one record, and with --outcome what its callers are told',
  usage: `${recordUsage}
  --outcome          the outcome too: status, headers and body
${storeUsage}`,
  details: 'Exit code 1: there is no such record.',
  options: { outcome: { type: 'boolean' }, ...recordOptions, ...storeOptions },
  run,
}

async function run(given: Given): Promise<Report> {
  const name = recordGiven(given)
  const found = await withSafe(given, (safe) => safe.show(name))
  if (found === undefined)
    return {
      exitCode: 1,
      json: { record: null },
      text: 'There is no such record: it was never claimed, or has been swept.',
    }
  const { outcome, ...record } = found
  if (outcome === undefined || !isGiven(given, 'outcome'))
    return { exitCode: 0, json: { record }, text: recordLines(record) }
  const json = outcomeJson(outcome)
  return {
    exitCode: 0,
    json: { record: { ...record, outcome: json } },
    text: `${recordLines(record)}\n\noutcome ${jsonText(json, 2)}`,
  }
}
