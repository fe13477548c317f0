/** Sweeping, and what an operator sees and decides. */
import type { Operating, RecordState, Sweeping } from '../../store.js'
import { type Call, type Connections, call, wire } from './driver.js'
import { latestMs, wholeMs } from './identity.js'
import { once } from './once.js'
import { integerAt, numberOf, stateAt, stateNumbers, summary } from './rows.js'
import type { Statements } from './statements.js'

export function sweeping(connections: Connections, statements: Statements, schema: string): Sweeping {
  return {
    sweep: async ({ limit, callerNowMs }) => {
      const { rows } = await once(
        connections,
        call(statements.sweep, String(limit), latestMs(callerNowMs)),
        schema,
      )
      return rows.length
    },
  }
}

export function operating(connections: Connections, statements: Statements, schema: string): Operating {
  return {
    list: async ({ states, limit }) => {
      const numbers = (states ?? (Object.keys(stateNumbers) as RecordState[])).map(numberOf)
      if (numbers.length === 0) return []
      const { rows } = await once(
        connections,
        call(statements.list(numbers), String(limit)),
        schema,
        'harmless',
      )
      return rows.map(summary)
    },
    count: async () => {
      const counts: Record<RecordState, number> = { running: 0, released: 0, done: 0, unknown: 0, dead: 0 }
      const { rows } = await once(connections, call(statements.count), schema, 'harmless')
      for (const row of rows) counts[stateAt(row, 0)] = integerAt(row, 1)
      return counts
    },
    resolveDone: ({ identity: { key, scope }, generation, outcome, retainMs }) =>
      wrote(call(statements.resolveDone, key, scope, String(generation), wire(outcome), wholeMs(retainMs))),
    resolveReleased: ({ identity: { key, scope }, generation, retainMs }) =>
      wrote(call(statements.resolveReleased, key, scope, String(generation), wholeMs(retainMs))),
  }

  async function wrote(asked: Call): Promise<boolean> {
    const { rows } = await once(connections, asked, schema)
    return rows.length > 0
  }
}
