/** Sweeping, and what an operator sees and decides. */
import type { Operating, RecordState, RecordSummary, Sweeping } from '../../store.js'
import type { Row } from './handles.js'
import { wrote } from './lease-mode.js'
import {
  integerIn,
  latestMs,
  lifeIn,
  nameOf,
  numberOf,
  stateIn,
  stateNumbers,
  textIn,
  wholeMs,
} from './rows.js'
import { statements } from './statements.js'
import { type Context, read, write } from './turns.js'

/** Records in one transaction of the sweeper: a few ms in which nobody else writes and no timer fires. */
const batch = 100

export function sweeping(context: Context): Sweeping {
  return { sweep }

  async function sweep({ limit, callerNowMs }: Parameters<Sweeping['sweep']>[0]): Promise<number> {
    let removed = 0
    while (removed < limit) {
      const size = Math.min(batch, limit - removed)
      const gone = await remove(size, callerNowMs)
      removed += gone
      if (gone < size) return removed
      await new Promise((resume) => setImmediate(resume))
    }
    return removed
  }

  async function remove(size: number, callerNowMs: number): Promise<number> {
    return write(context, ({ rows }) => {
      const gone = rows(statements.sweep, { limit: size, latest: latestMs(callerNowMs) })
      const greatest = gone.reduce((most, row) => Math.max(most, integerIn(row, 'generation')), 0)
      if (gone.length > 0) rows(statements.swept, { generation: greatest })
      return gone.length
    })
  }
}

/** All that a list may be asked for in words of the index of what waits for an operator. */
const waiting = [stateNumbers.unknown, stateNumbers.dead]

export function operating(context: Context): Operating {
  return {
    list: async ({ states, limit }) => {
      const numbers = (states ?? (Object.keys(stateNumbers) as RecordState[])).map(numberOf)
      if (numbers.length === 0) return []
      const few = numbers.every((number) => waiting.includes(number as 4 | 5))
      const where = `${few ? 'state in (4, 5) and ' : ''}state in (${numbers.join(', ')})`
      const rows = await read(context, (connection) => connection.rows(statements.list(where), { limit }))
      return rows.map(summaryIn)
    },
    count: async () => {
      const counts: Record<RecordState, number> = { running: 0, released: 0, done: 0, unknown: 0, dead: 0 }
      for (const row of await read(context, (connection) => connection.rows(statements.count)))
        counts[stateIn(row)] = integerIn(row, 'records')
      return counts
    },
    resolveDone: ({ identity, generation, outcome, retainMs }) =>
      wrote(context, statements.resolveDone, {
        ...nameOf(identity),
        generation,
        outcome,
        retain_ms: wholeMs(retainMs),
      }),
    resolveReleased: ({ identity, generation, retainMs }) =>
      wrote(context, statements.resolveReleased, {
        ...nameOf(identity),
        generation,
        retain_ms: wholeMs(retainMs),
      }),
  }
}

function summaryIn(row: Row): RecordSummary {
  const state = stateIn(row)
  const { live, leftMs } = lifeIn(row, state, Number.POSITIVE_INFINITY)
  return {
    identity: { key: textIn(row, 'key'), scope: textIn(row, 'scope') },
    state,
    generation: integerIn(row, 'generation'),
    attempts: integerIn(row, 'attempts'),
    live,
    leftMs,
  }
}
