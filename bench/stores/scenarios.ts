/** What is compared for every client of every store, as far as the store has it. */
import { uuidKey } from '../keys.js'
import { cycle, replayed, type Scenario } from '../scenario.js'
import type { Subject, Way } from './store.js'

/** `finished` are keys whose work is done, to be replayed. */
export function scenariosOf(subject: Subject, finished: readonly string[]): Scenario<Subject>[] {
  const { transaction, lease } = subject
  const finishedKey = () => cycle(finished)
  return [
    ...(transaction === undefined ? [] : fresh('transaction', 'transaction', transaction)),
    ...fresh('lease', 'work', lease),
    {
      id: 'read',
      title: 'bare read by primary key',
      keys: finishedKey,
      operation: ({ read }) => read,
    },
    ...(transaction === undefined ? [] : [replay('transaction', finishedKey, transaction)]),
    replay('lease', finishedKey, lease),
  ]
}

/** `mode` with fresh keys, against the same without any. */
function fresh(mode: string, what: string, way: Way): Scenario<Subject>[] {
  const against = `bare-${what}`
  return [
    { id: against, title: `bare ${what}`, operation: () => () => way.bare() },
    {
      id: mode,
      title: `${mode} mode, fresh key`,
      against,
      keys: () => uuidKey,
      operation: () => (key) => way.safe(key),
    },
  ]
}

function replay(mode: string, keys: () => () => string, way: Way): Scenario<Subject> {
  return {
    id: `replay-${mode}`,
    title: `replay, ${mode} mode`,
    against: 'read',
    keys,
    operation: () => (key) => replayed(way.safe(key)),
  }
}
