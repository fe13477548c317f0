/** One statement through the pool, in a transaction of its own. */
import { setTimeout } from 'node:timers/promises'
import type { Call, Connections, Flown, Result } from './driver.js'
import { explained, isConflict, isConnectionFault } from './sql-state.js'

/** Tries of a statement that met a rival under a session default of SERIALIZABLE: it wrote nothing. */
const conflictTries = 6
/** Longest pause before the next try, in ms; doubled each time, with full jitter. */
const conflictPauseMs = 5

/**
 * Sends one statement. `harmless` marks one that only reads: a dead pooled connection is then answered by one fresh try. A write
 * whose answer was lost is its caller's to judge, by the owner token.
 */
export async function once(
  connections: Connections,
  asked: Call,
  schema: string,
  kind?: 'harmless',
): Promise<Result> {
  let fresh = kind === 'harmless'
  for (;;) {
    const session = await connections.acquire()
    const { results, failure } = await unconflicted(() => session.flight([asked]))
    const broken = failure !== undefined && isConnectionFault(failure.error)
    if (broken) session.destroy()
    else session.release()
    if (failure === undefined) return results[0] ?? { rows: [], tag: '' }
    if (!broken || !fresh) throw explained(failure.error, schema)
    fresh = false
  }
}

/** Sends a statement again that met a rival and wrote nothing. */
export async function unconflicted(send: () => Promise<Flown>): Promise<Flown> {
  for (let tries = 1; ; tries += 1) {
    const flown = await send()
    if (flown.failure === undefined || !isConflict(flown.failure.error) || tries === conflictTries)
      return flown
    await setTimeout(Math.random() * conflictPauseMs * 2 ** tries)
  }
}
