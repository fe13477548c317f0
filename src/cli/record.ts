/** The record that a command is about: how it is named, and what to say when a verdict on it was refused. */
import type { RecordName, RecordView, Retrysafe } from '../index.js'
import { type Given, numberGiven, type OptionTypes, textGiven, textNeeded } from './command.js'
import { CliError } from './errors.js'
import { endOf } from './format.js'

export const recordOptions: OptionTypes = {
  scope: { type: 'string' },
  key: { type: 'string' },
  operation: { type: 'string' },
}

export const recordUsage = `  --scope SCOPE      who the key belongs to
  --key KEY          the key
  --operation NAME   the operation, where the record has one`

export const verdictOptions: OptionTypes = { ...recordOptions, generation: { type: 'string' } }

export const verdictUsage = `${recordUsage}
  --generation N     the generation that list or show told: when another attempt has moved on since, nothing is done`

export function recordGiven(given: Given): RecordName {
  const operation = textGiven(given, 'operation')
  const name = { scope: textNeeded(given, 'scope'), key: textNeeded(given, 'key') }
  return operation === undefined ? name : { ...name, operation }
}

export function verdictGiven(given: Given): RecordName & { readonly generation: number } {
  const generation = numberGiven(given, 'generation')
  if (generation === undefined)
    throw new CliError(
      'USAGE',
      '--generation is missing',
      'Take it from `retrysafe show`, and look at the record while you are there.',
    )
  return { ...recordGiven(given), generation }
}

/** The record as it stands after a verdict, without its outcome. */
export async function standing(safe: Retrysafe<object>, name: RecordName): Promise<RecordView | undefined> {
  const found = await safe.show(name)
  if (found === undefined) return undefined
  const { key, scope, operation, state, generation, attempts, live, leftMs } = found
  return { key, scope, operation, state, generation, attempts, live, leftMs }
}

/** Why nothing was done: what stands is not what the verdict was about (rule 3). */
export function refusal(record: RecordView | undefined, seen: number, wanted: string): string {
  if (record === undefined) return 'Nothing was done: there is no such record.'
  if (record.generation !== seen)
    return `Nothing was done: another attempt has moved on to generation ${record.generation} (${record.state}). Look again.`
  if (record.state === 'running' && record.live)
    return `Nothing was done: its owner is alive, the lease ends ${endOf(record)}. Retries take over by themselves once it has ended.`
  return `Nothing was done: it is ${record.state}, and only ${wanted} can be decided about.`
}
