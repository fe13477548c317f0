/** `retrysafe migrate`: brings the tables of a store to this version of the package. */
import type { Store } from '../index.js'
import type { Command, Given, Report } from './command.js'
import { CliError, unavailable } from './errors.js'
import { storeOptions, storeUsage, withSafe } from './store.js'

export const migrate: Command = {
  name: 'migrate',
  summary: 'creates the tables of the store, or brings them up to date',
  usage: storeUsage,
  details: 'Any number may run at once, and again: what is there already is left alone.',
  options: storeOptions,
  run,
}

async function run(given: Given): Promise<Report> {
  const bring = async (_: unknown, { name, migrating }: Store<object>) => {
    if (migrating === undefined)
      throw new CliError('ABILITY_MISSING', `the ${name} store has no tables to migrate`)
    return migrating.migrate().catch((error: unknown) => {
      throw unavailable(error)
    })
  }
  const migrated = await withSafe(given, bring, true)
  const text =
    migrated.length === 0 ? 'Nothing to do: the tables are up to date.' : `Applied: ${migrated.join(', ')}.`
  return { exitCode: 0, json: { migrated }, text }
}
