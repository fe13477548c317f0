/**
 * Renews leases, many in one statement, on a connection of its own, so that work that fills the pool cannot cost its own lease (rule 6).
 *
 * mysql2 can open one beside the pool. MariaDB's connector does not show how: there it is one of `renewalPool`, where it was given, or of the pool itself. It does not
 * keep the process alive, and is closed after a while without a renewal. A statement that is not answered in time closes it: the next
 * renewal then starts on a new connection instead of behind a dead one.
 */
import type { Renewal } from '../../store.js'
import type { Ground } from './claim.js'
import type { Connection } from './driver.js'
import { explained, isConnectionFault } from './errors.js'
import { onConnection, together, unconflicted } from './once.js'
import { integerAt } from './rows.js'

const idleMs = 10_000
/** The least time a renewal may take; else a third of the shortest lease, after which the next renewal is due. */
const leastPatienceMs = 1000

type Answers = readonly (boolean | undefined)[]

export function renewals(ground: Ground) {
  const { statements, connections } = ground
  let connection: Promise<Connection> | undefined
  let idle: NodeJS.Timeout | undefined
  let turn: Promise<unknown> = Promise.resolve()
  return { renew, close }

  async function renew(wanted: readonly Renewal[]): Promise<Answers> {
    if (wanted.length === 0) return []
    const send = (on: Connection) => unconflicted(() => extend(on, wanted))
    const { dedicate } = connections
    if (dedicate === undefined) return onConnection(ground, send)
    const patienceMs = Math.max(leastPatienceMs, Math.min(...wanted.map(({ leaseMs }) => leaseMs)) / 3)
    const mine = turn.then(() => alone(dedicate, send, patienceMs))
    turn = mine.catch(() => undefined)
    return mine
  }

  /** A row that is locked is passed over and said to be so: waiting for a commit that hangs would cost every other lease of the process. */
  async function extend(on: Connection, wanted: readonly Renewal[]): Promise<Answers> {
    return together(on, async () => {
      const free = positions((await on.run(statements.lockOurs(wanted))).rows)
      const found = wanted.filter((_, at) => free.has(at))
      if (found.length > 0) await on.run(statements.renew(found))
      if (found.length === wanted.length) return wanted.map(() => true)
      // Ours but locked: neither renewed nor lost.
      const ours = positions((await on.run(statements.findOurs(wanted))).rows)
      return wanted.map((_, at) => free.has(at) || (ours.has(at) ? undefined : false))
    })
  }

  async function alone(
    dedicate: () => Promise<Connection>,
    send: (on: Connection) => Promise<Answers>,
    patienceMs: number,
  ): Promise<Answers> {
    clearTimeout(idle)
    connection ??= dedicate()
    const mine = connection
    let up = false
    const late = setTimeout(() => drop(mine), patienceMs).unref()
    try {
      const on = await Promise.race([mine, impatience(patienceMs)])
      up = true
      return await send(on)
    } catch (error) {
      // A connection that never came up must not be waited for again, whatever kept it; nor one that died while it idled.
      if (!up || isConnectionFault(error)) drop(mine)
      throw explained(error, ground.schema)
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

function positions(rows: readonly (readonly (string | null)[])[]): Set<number> {
  return new Set(rows.map((row) => integerAt(row, 0)))
}

function impatience(patienceMs: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error('the renewal found no connection in time')), patienceMs).unref()
  })
}
