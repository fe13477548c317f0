/** `retrysafe sweep`: what a process's own sweeper does, once, for those who would rather have cron do it. */
import type { Command, Given, Report } from './command.js'
import { CliError } from './errors.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

export const sweep: Command = {
  name: 'sweep',
  summary: 'removes records that are past their retention',
  usage: storeUsage,
  details: 'In batches of 1,000, until none is left. Unfinished, unknown and dead records stay.',
  options: storeOptions,
  run,
}

async function run(given: Given): Promise<Report> {
  const removed = await withSafe(given, (safe, { name, sweeping }) => {
    if (sweeping === undefined)
      throw new CliError('ABILITY_MISSING', `the ${name} store has no sweeper: its records end by themselves`)
    return safe.sweep()
  })
  return {
    exitCode: 0,
    json: { removed },
    text: `Removed ${removed === 1 ? '1 record' : `${removed} records`}.`,
  }
}
