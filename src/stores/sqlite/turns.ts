/** Statements of their own: a read at any time, a write when it is its turn in the file. */
import type { Connection } from './connection.js'
import { enter } from './gate.js'
import { whenFree } from './patience.js'
import { fullSync, type Source } from './sources.js'
import { statements } from './statements.js'

export interface Context {
  readonly source: Source
  /** How long the file may be busy before it counts as down, in ms. */
  readonly limitMs: number
  /** Whether a COMMIT of ours has to outlive a power cut. */
  readonly synced: boolean
}

/** Reads outside any transaction. No queue: in WAL mode a reader meets no writer. */
export function read<T>({ source, limitMs }: Context, run: (connection: Connection) => T): Promise<T> {
  return whenFree(() => {
    const connection = source.home()
    return connection.quietly(() => run(connection))
  }, limitMs)
}

/** Known after the first time; then it is not waited for, because `within` may not wait on a shared connection. */
export async function gateName({ source, limitMs }: Context): Promise<string> {
  return source.knownGate() ?? whenFree(() => source.gate(), limitMs)
}

/** Writes in a transaction of its own, begun and ended in one breath. */
export async function write<T>(context: Context, run: (connection: Connection) => T): Promise<T> {
  const { source, limitMs } = context
  const leave = await enter(await gateName(context), limitMs)
  try {
    return await whenFree(() => {
      const connection = source.home()
      return connection.quietly(() => durably(context, connection, () => together(connection, run)))
    }, limitMs)
  } finally {
    leave()
  }
}

function together<T>(connection: Connection, run: (connection: Connection) => T): T {
  connection.exec(statements.beginWriting)
  try {
    const value = run(connection)
    connection.exec(statements.commit)
    return value
  } catch (error) {
    undo(connection)
    throw error
  }
}

/** Rolls back whatever is open; SQLite itself may have done so already, after a full disk say. */
export function undo(connection: Connection): void {
  if (connection.inTransaction()) insist(connection, statements.rollback)
}

/**
 * Runs what has to be run at the end. better-sqlite3 refuses it while an iterator is open that the work has left behind; SQLite does not, and the iterator
 * fails at its next step.
 */
function insist(connection: Connection, text: string): void {
  try {
    connection.exec(text)
  } catch (error) {
    const { handle } = connection
    if (!('unsafeMode' in handle) || typeof handle.unsafeMode !== 'function') throw error
    handle.unsafeMode(true)
    try {
      connection.exec(text)
    } finally {
      handle.unsafeMode(false)
    }
  }
}

function durably<T>(context: Context, connection: Connection, run: () => T): T {
  const restore = raiseSync(context, connection)
  try {
    return run()
  } finally {
    restore()
  }
}

/** A shared connection has the sync level of its user (better-sqlite3: NORMAL in WAL mode): raised for ours, and put back behind it. */
export function raiseSync({ source, synced }: Context, connection: Connection): () => void {
  if (!source.shared || !synced) return () => undefined
  const before = connection.pragma('main.synchronous')
  if (before >= fullSync) return () => undefined
  connection.exec('pragma main.synchronous = full')
  return () => insist(connection, `pragma main.synchronous = ${before}`)
}
