/** Asks the server one question, in a transaction of its own that only reads and that nobody has to wait for. */
import { type Connection, call, type Row, type Value } from '../driver.js'
import { sqlState } from '../sql-state.js'
import { named } from '../statements.js'

/** Rows of one statement; throws what the server or the connection said. */
export type Ask = (text: string, ...values: readonly Value[]) => Promise<readonly Row[]>

/** How long a question may take, in ms: a doctor who stalls the patient is none. */
export const questionLimitMs = 5000

export function askerOn(connection: Connection): Ask {
  return async (text, ...values) => {
    const { results, failure } = await connection.flight([
      call(named('begin isolation level read committed read only')),
      call(named(`select set_config('statement_timeout', '${questionLimitMs}', true)`)),
      call(named(text), ...values),
      call(named('commit')),
    ])
    if (failure === undefined) return results[2]?.rows ?? []
    if (sqlState(failure.error) !== '') await connection.flight([call(named('rollback'))])
    throw failure.error
  }
}
