/** Statements of our own, without work among them: one by itself, or a few in a transaction. */
import { setTimeout } from 'node:timers/promises'
import { type Answer, type Connection, type Connections, inOneGo } from './driver.js'
import { explained, isConflict, isConnectionFault } from './errors.js'
import { isTimeout } from './patience.js'
import type { Server } from './server.js'
import { begin, commit, isolation, rollback } from './statements.js'

/** Tries of what met a rival: it was rolled back, and may be sent again as it is. */
const conflictTries = 6
/** Longest pause before the next try, in ms; doubled each time, with full jitter. */
const conflictPauseMs = 5

export interface Ours {
  readonly connections: Connections
  readonly schema: string
  readonly server: (connection: Connection) => Promise<Server>
}

/**
 * Runs statements on a connection of the pool. `harmless` marks what only reads: a dead pooled connection is then answered by one fresh try.
 * A write whose answer was lost is its caller's to judge, by the owner token.
 */
export async function onConnection<T>(
  ours: Ours,
  run: (connection: Connection) => Promise<T>,
  kind?: 'harmless',
): Promise<T> {
  for (let fresh = kind === 'harmless'; ; fresh = false) {
    const connection = await ours.connections.acquire().catch((error: unknown) => {
      throw explained(error, ours.schema)
    })
    try {
      const { plain } = await ours.server(connection)
      // Without autocommit it may come with a transaction that somebody's read has opened, and whoever gave it back has given up.
      if (!plain) await connection.run(rollback)
      const answer = await unconflicted(() => run(connection))
      connection.release()
      return answer
    } catch (error) {
      const broken = isConnectionFault(error)
      if (broken) connection.destroy()
      else connection.release()
      if (!broken || !fresh || isTimeout(error)) throw explained(error, ours.schema)
    }
  }
}

/** One statement in a transaction of its own. */
export function once(ours: Ours, text: string, kind?: 'harmless'): Promise<Answer> {
  return onConnection(ours, (connection) => byItself(ours, connection, () => connection.run(text)), kind)
}

/** Runs what needs no transaction in none, and in one where the session's settings would make something else of it. */
export async function byItself<T>(ours: Ours, connection: Connection, run: () => Promise<T>): Promise<T> {
  return (await ours.server(connection)).plain ? run() : together(connection, run)
}

/** A few statements in one transaction under READ COMMITTED, run again where the server rolled it back for a rival. */
export async function together<T>(
  connection: Connection,
  run: (connection: Connection) => Promise<T>,
): Promise<T> {
  await inOneGo(connection, [isolation, begin])
  try {
    const answer = await run(connection)
    await connection.run(commit)
    return answer
  } catch (error) {
    if (!isConnectionFault(error)) await connection.run(rollback)
    throw error
  }
}

/** Sends again what met a rival and wrote nothing. */
export async function unconflicted<T>(send: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send()
    } catch (error) {
      if (!isConflict(error) || tries === conflictTries) throw error
      await setTimeout(Math.random() * conflictPauseMs * 2 ** tries)
    }
  }
}
