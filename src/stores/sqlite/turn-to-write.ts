/**
 * A transaction that has the write lock from its first statement on: BEGIN IMMEDIATE. What is read behind it cannot be overtaken, and no
 * statement of the work meets SQLITE_BUSY (rule 37).
 */
import { fail, type RetrysafeError } from '../../errors.js'
import type { Connection } from './connection.js'
import { enter } from './gate.js'
import { whenFree } from './patience.js'
import { statements } from './statements.js'
import { type Context, gateName, raiseSync, undo } from './turns.js'

export interface Turn {
  readonly connection: Connection
  /** Ends the turn: rolls back what is still open, gives the connection back and lets the next one in. */
  end(): void
  isOver(): boolean
  /** On a shared connection: calls back if the work goes on beyond its breath; by then all is rolled back. */
  onWait(listener: (because: RetrysafeError) => void): void
}

export async function beginWriting(context: Context): Promise<Turn> {
  const { source, limitMs } = context
  const leave = await enter(await gateName(context), limitMs)
  try {
    // On a fresh turn of the event loop nothing is left that was to run before us: until the loop turns again, only what we start runs.
    if (source.shared) await new Promise((resume) => setImmediate(resume))
    const { connection, restore } = await whenFree(() => begun(context), limitMs)
    return turnOf(context, connection, { restore, leave })
  } catch (error) {
    leave()
    throw error
  }
}

function begun(context: Context): { connection: Connection; restore(): void } {
  const connection = context.source.take()
  let restore: () => void = () => undefined
  try {
    restore = raiseSync(context, connection)
    connection.quietly(() => connection.exec(statements.beginWriting))
    connection.rows(statements.proveWritable)
    connection.exec(statements.savepointClaim)
    return { connection, restore }
  } catch (error) {
    undo(connection)
    restore()
    context.source.give(connection)
    throw error
  }
}

function turnOf(
  { source }: Context,
  connection: Connection,
  behind: { restore(): void; leave(): void },
): Turn {
  let over = false
  let listener: ((because: RetrysafeError) => void) | undefined

  function end(): void {
    if (over) return
    over = true
    try {
      undo(connection)
      behind.restore()
      source.give(connection)
    } catch {
      // A connection that cannot be rolled back or closed is broken; its transaction ends with it, and the next one needs the turn.
    }
    behind.leave()
  }

  /** A tick that is asked for in a microtask comes when no microtask is left, and before anything else of the program. */
  function watch(): void {
    if (over) return
    const because = fail('TRANSACTION_ABORTED', {
      detail:
        'the work waited for something, and on a shared connection it must be synchronous: others would write into its transaction. Use sqlite({ open })',
    })
    listener?.(because)
    end()
  }

  if (source.shared) process.nextTick(watch)
  return {
    connection,
    end,
    isOver: () => over,
    onWait: (told) => {
      listener = told
    },
  }
}
