/** Sweeping, and what an operator sees and decides. */
import type { Operating, RecordState, Sweeping } from '../../store.js'
import type { Ground } from './claim.js'
import { byItself, onConnection, once, together } from './once.js'
import { integerAt, numberOf, stateAt, stateNumbers, summary, textAt } from './rows.js'
import { fitting } from './server.js'

/** Keys in one DELETE: names of the longest kind, as hexadecimal digits, stay well below the least packet that servers are set to. */
const batch = 500

export function sweeping(ground: Ground): Sweeping {
  const { statements } = ground
  return {
    sweep: ({ limit, callerNowMs }) =>
      onConnection(ground, (connection) =>
        together(connection, async () => {
          const { rows } = await connection.run(statements.sweepable(limit, callerNowMs))
          const found = rows.map((row) => ({ key: textAt(row, 0), scope: textAt(row, 1) }))
          let removed = 0
          for (let from = 0; from < found.length; from += batch) {
            const some = found.slice(from, from + batch)
            removed += (await connection.run(statements.sweep(some, callerNowMs))).affected
          }
          return removed
        }),
      ),
  }
}

export function operating(ground: Ground): Operating {
  const { statements } = ground
  return {
    list: async ({ states, limit }) => {
      const numbers = (states ?? (Object.keys(stateNumbers) as RecordState[])).map(numberOf)
      if (numbers.length === 0) return []
      return (await once(ground, statements.list(numbers, limit), 'harmless')).rows.map(summary)
    },
    count: async () => {
      const counts: Record<RecordState, number> = { running: 0, released: 0, done: 0, unknown: 0, dead: 0 }
      const { rows } = await once(ground, statements.count, 'harmless')
      for (const row of rows) counts[stateAt(row, 0)] = integerAt(row, 1)
      return counts
    },
    resolveDone: ({ identity, generation, outcome, retainMs }) =>
      wrote(statements.resolveDone(identity, generation, outcome, retainMs)),
    resolveReleased: ({ identity, generation, retainMs }) =>
      wrote(statements.resolveReleased(identity, generation, retainMs)),
  }

  async function wrote(text: string): Promise<boolean> {
    const { affected } = await onConnection(ground, async (connection) => {
      const fit = fitting(text, await ground.server(connection))
      return byItself(ground, connection, () => connection.run(fit))
    })
    return affected > 0
  }
}
