/**
 * Renews leases on a connection of its own, many in one statement, so that work that fills the pool cannot cost its own lease (rule 6).
 *
 * The connection is opened at the first renewal, does not keep the process alive, and is closed after a while without one. A
 * statement that is not answered in time closes it: the next renewal then starts on a new connection instead of behind a dead one.
 */
import type { Renewal } from '../../store.js'
import { type Call, type Connection, type Connections, call, type Result } from './driver.js'
import { wholeMs } from './identity.js'
import { once, unconflicted } from './once.js'
import { flagAt, integerAt } from './rows.js'
import { explained, isConnectionFault } from './sql-state.js'
import type { Statements } from './statements.js'

const idleMs = 10_000
/** The least time a renewal may take; else a third of the shortest lease, after which the next renewal is due. */
const leastPatienceMs = 1000

export function renewals(connections: Connections, statements: Statements, schema: string) {
  let connection: Promise<Connection> | undefined
  let idle: NodeJS.Timeout | undefined
  let turn: Promise<unknown> = Promise.resolve()
  return { renew, close }

  async function renew(wanted: readonly Renewal[]): Promise<readonly (boolean | undefined)[]> {
    if (wanted.length === 0) return []
    const asked = call(
      statements.renew,
      textArray(wanted.map(({ identity }) => identity.key)),
      textArray(wanted.map(({ identity }) => identity.scope)),
      textArray(wanted.map(({ owner }) => owner)),
      textArray(wanted.map(({ leaseMs }) => wholeMs(leaseMs))),
    )
    const patienceMs = Math.max(leastPatienceMs, Math.min(...wanted.map(({ leaseMs }) => leaseMs)) / 3)
    const { dedicate } = connections
    const { rows } =
      dedicate === undefined
        ? await once(connections, asked, schema)
        : await inTurn(() => alone(dedicate, asked, patienceMs))
    const answers = new Map(rows.map((row) => [integerAt(row, 0), flagAt(row, 1)]))
    // Ours but locked: neither renewed nor lost.
    return wanted.map((_, index) => (answers.get(index + 1) === false ? undefined : answers.has(index + 1)))
  }

  /** One at a time: node-postgres 9 will refuse a query while another one runs on the connection. */
  function inTurn(send: () => Promise<Result>): Promise<Result> {
    const mine = turn.then(send)
    turn = mine.catch(() => undefined)
    return mine
  }

  async function alone(
    dedicate: () => Promise<Connection>,
    asked: Call,
    patienceMs: number,
  ): Promise<Result> {
    clearTimeout(idle)
    connection ??= dedicate()
    const mine = connection
    let up = false
    const late = setTimeout(() => drop(mine), patienceMs).unref()
    try {
      const session = await Promise.race([mine, impatience(patienceMs)])
      up = true
      const { results, failure } = await unconflicted(() => session.flight([asked]))
      if (failure === undefined) return results[0] ?? { rows: [], tag: '' }
      if (isConnectionFault(failure.error)) drop(mine)
      throw explained(failure.error, schema)
    } catch (error) {
      // A connection that never came up must not be waited for again, whatever kept it; nor one that died while it idled.
      if (!up || isConnectionFault(error)) drop(mine)
      throw error
    } finally {
      clearTimeout(late)
      clearTimeout(idle)
      idle = setTimeout(() => drop(connection), idleMs).unref()
    }
  }

  function drop(gone: Promise<Connection> | undefined): void {
    if (gone === undefined) return
    if (connection === gone) connection = undefined
    gone.then(
      (session) => session.destroy(),
      () => undefined,
    )
  }

  async function close(): Promise<void> {
    clearTimeout(idle)
    drop(connection)
  }
}

function impatience(patienceMs: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error('the renewal found no connection in time')), patienceMs).unref()
  })
}

/** PostgreSQL's text form of an array. */
function textArray(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`
}
