/** `retrysafe release`: frees a record whose owner is gone, or that nobody can tell about, for the next attempt. */
import type { Command, Given, Report } from './command.js'
import { refusal, standing, verdictGiven, verdictOptions, verdictUsage } from './record.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

export const release: Command = {
  name: 'release',
  summary: 'frees an unknown or dead record, or one whose lease has ended: the next attempt runs',
  usage: `${verdictUsage}
${storeUsage}`,
  details:
    'The next attempt runs the work again: look first whether the first one took effect. Exit code 1: nothing was done, and why.',
  options: { ...verdictOptions, ...storeOptions },
  run,
}

async function run(given: Given): Promise<Report> {
  const name = verdictGiven(given)
  const { released, record } = await withSafe(given, async (safe) => {
    const released = await safe.release(name)
    return { released, record: await standing(safe, name) }
  })
  const text = released
    ? 'Released: the next attempt runs.'
    : refusal(record, name.generation, 'an unknown or dead record, or one whose lease has ended,')
  return { exitCode: released ? 0 : 1, json: { released, record: record ?? null }, text }
}
