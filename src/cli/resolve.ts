/** `retrysafe resolve`: says what became of an unknown record, after somebody has looked. */
import { readFileSync } from 'node:fs'
import { resolve as resolvePath } from 'node:path'
import type { Resolution, StoredReply } from '../index.js'
import {
  type Command,
  type Given,
  isGiven,
  numberGiven,
  type Report,
  textGiven,
  textsGiven,
} from './command.js'
import { CliError } from './errors.js'
import { refusal, standing, verdictGiven, verdictOptions, verdictUsage } from './record.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

export const resolve: Command = {
  name: 'resolve',
  summary: 'says whether an unknown record took effect, and what its retries are told',
  usage: `${verdictUsage}
  --not-done         it did not take effect: the next attempt runs
  --done             it did, and retries are told so from now on, with one of
    --value JSON       the value, for a record of the function API
    --status N         the status, for a record of an HTTP route, and with it
    --header 'A: B'    a header; may be repeated
    --body TEXT        the body, or
    --body-file FILE   the body's bytes
${storeUsage}`,
  details: 'Exit code 1: nothing was done, and why.',
  options: {
    done: { type: 'boolean' },
    'not-done': { type: 'boolean' },
    value: { type: 'string' },
    status: { type: 'string' },
    header: { type: 'string', multiple: true },
    body: { type: 'string' },
    'body-file': { type: 'string' },
    ...verdictOptions,
    ...storeOptions,
  },
  run,
}

async function run(given: Given): Promise<Report> {
  const name = verdictGiven(given)
  const resolution = resolutionGiven(given)
  const { resolved, record } = await withSafe(given, async (safe) => {
    const resolved = await safe.resolve(name, resolution)
    return { resolved, record: await standing(safe, name) }
  })
  const done = resolution.done
    ? 'Resolved as done: every retry is told so.'
    : 'Resolved as not done: the next attempt runs.'
  const text = resolved ? done : refusal(record, name.generation, 'an unknown record')
  return { exitCode: resolved ? 0 : 1, json: { resolved, record: record ?? null }, text }
}

function resolutionGiven(given: Given): Resolution {
  const done = isGiven(given, 'done')
  if (done === isGiven(given, 'not-done'))
    throw new CliError('USAGE', 'say --done or --not-done: one of them')
  const value = textGiven(given, 'value')
  const status = numberGiven(given, 'status')
  const answers = [value, status].filter((one) => one !== undefined).length
  const ofReply = ['header', 'body', 'body-file'].filter((name) => given.values[name] !== undefined)
  if (status === undefined && ofReply.length > 0)
    throw new CliError('USAGE', '--header, --body and --body-file go with --status')
  if (!done && answers > 0)
    throw new CliError('USAGE', '--not-done has no answer: --value and --status go with --done')
  if (!done) return { done }
  // Without an answer every retry would get an empty one, which nobody may have meant.
  if (answers !== 1) throw new CliError('USAGE', '--done needs the answer: --value or --status, one of them')
  if (value !== undefined) return { done, value: parsed(value) }
  return { done, reply: replyGiven(given, status ?? 0) }
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new CliError('USAGE', '--value must be JSON; a text needs its quotes: \'"text"\'')
  }
}

function replyGiven(given: Given, status: number): StoredReply {
  const headers = textsGiven(given, 'header').map((line): readonly [string, string] => {
    const at = line.indexOf(':')
    if (at < 1) throw new CliError('USAGE', "--header must be 'Name: value'")
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  })
  return { status, headers, body: bodyGiven(given) }
}

function bodyGiven(given: Given): Uint8Array {
  const file = textGiven(given, 'body-file')
  const text = textGiven(given, 'body')
  if (file === undefined) return Buffer.from(text ?? '')
  if (text !== undefined) throw new CliError('USAGE', '--body and --body-file: pass one of them')
  try {
    return readFileSync(resolvePath(given.world.cwd, file))
  } catch (error) {
    throw new CliError('USAGE', `--body-file cannot be read: ${error instanceof Error ? error.message : ''}`)
  }
}
