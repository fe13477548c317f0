/** Asks the server one question, in a transaction of its own that only reads and that nobody has to wait for. */
import { type Connections, call, type Row, type Value } from '../driver.js'
import { isConnectionFault } from '../sql-state.js'
import { named } from '../statements.js'

/** Rows of one statement; throws what the server or the connection said. */
export type Ask = (text: string, ...values: readonly Value[]) => Promise<readonly Row[]>

/** How long a question may take, in ms: a doctor who stalls the patient is none. */
export const questionLimitMs = 5000

/** Each question on a session of its own, which some clients take back with the end of a transaction. */
export function askerThrough(connections: Pick<Connections, 'acquire'>): Ask {
  return async (text, ...values) => {
    const session = await connections.acquire()
    const { results, failure } = await session.flight([
      call(named('begin isolation level read committed read only')),
      call(named(`select set_config('statement_timeout', '${questionLimitMs}', true)`)),
      call(named(text), ...values),
      call(named('commit')),
    ])
    const broken = failure !== undefined && isConnectionFault(failure.error)
    if (failure !== undefined && !broken) await session.flight([call(named('rollback'))])
    if (broken) session.destroy()
    else session.release()
    if (failure !== undefined) throw failure.error
    return results[2]?.rows ?? []
  }
}
