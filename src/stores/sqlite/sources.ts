/** Where connections come from: one that is shared with the rest of the program, or as many as are opened. */
import { fail } from '../../errors.js'
import { type Connection, connectionOf } from './connection.js'
import { occupiedError } from './faults.js'
import { gateOf } from './gate.js'
import { checkHandle, type SqliteHandle } from './handles.js'

export interface Source {
  /** The one connection that others use between two turns of the event loop, if it is that. */
  readonly shared: SqliteHandle | undefined
  /** The queue of the file. Throws while the file is busy. */
  gate(): string
  /** The same, if it has been asked for before. */
  knownGate(): string | undefined
  /** For statements of their own, outside any transaction. Throws while a shared one is inside somebody else's. */
  home(): Connection
  /** For one transaction. */
  take(): Connection
  /** Takes a connection back that is outside any transaction again. */
  give(connection: Connection): void
  /** Lets go of what was opened here. */
  close(): void
}

/** `synchronous` in numbers, as the pragma has it. */
export const fullSync = 2

/** The path of the main database; empty for one in memory. */
export function fileOf(connection: Connection): string {
  const main = connection.rows('pragma database_list').find(({ name }) => name === 'main')
  return String(main?.file ?? '')
}

export function journalOf(connection: Connection): string {
  return String(connection.rows('pragma main.journal_mode')[0]?.journal_mode)
}

/** A database in memory has no file that would name it: each is a queue of its own. */
const memories = new WeakMap<SqliteHandle, string>()
let memoriesSoFar = 0

function memoryName(handle: SqliteHandle): string {
  const known = memories.get(handle)
  if (known !== undefined) return known
  memoriesSoFar += 1
  const name = `memory:${memoriesSoFar}`
  memories.set(handle, name)
  return name
}

/** One connection for everything. It stays the caller's: no setting of it is changed for longer than a breath, and it is never closed. */
export function sharedSource(handle: SqliteHandle): Source {
  const connection = connectionOf(handle)
  let gate: string | undefined

  function named(): string {
    const file = fileOf(connection)
    if (file === '') return memoryName(handle)
    // With a rollback journal a reader in another process makes COMMIT fail, and there is no time to wait in.
    if (journalOf(connection) !== 'wal') {
      throw fail('OPTION_INVALID', {
        detail: `the database must be in WAL mode: run "pragma journal_mode = wal" on it once`,
      })
    }
    return gateOf(file)
  }

  function home(): Connection {
    if (connection.inTransaction()) throw occupiedError()
    return connection
  }

  return {
    shared: handle,
    gate: () => {
      gate ??= connection.quietly(named)
      return gate
    },
    knownGate: () => gate,
    home,
    take: home,
    give: () => undefined,
    close: () => undefined,
  }
}

/**
 * A connection for each transaction, and one for everything else. The one behind the last transaction is kept for the next: there is one writer at a time,
 * and the last connection that closes would check the whole log point every time.
 */
export function openedSource(open: () => unknown, synced: boolean): Source {
  let first: Connection | undefined
  let gate: string | undefined
  let idle: Connection | undefined
  const given = new WeakSet<SqliteHandle>()

  function fresh(): Connection {
    const handle = checkHandle(open(), 'open() must give')
    if (given.has(handle)) {
      throw fail('OPTION_INVALID', {
        detail: 'open() gives the same connection again: pass one that is shared as sqlite(db)',
      })
    }
    given.add(handle)
    const connection = connectionOf(handle)
    try {
      const file = fileOf(connection)
      if (file === '') {
        throw fail('OPTION_INVALID', {
          detail: 'open() gives a database in memory, a new one each time: pass one connection, sqlite(db)',
        })
      }
      if (gate !== undefined && gateOf(file) !== gate)
        throw fail('OPTION_INVALID', { detail: 'open() gives another file than before' })
      connection.exec('pragma busy_timeout = 0')
      if (journalOf(connection) !== 'wal') toWal(connection)
      // Said in words: a build may have another default for WAL mode, which a new connection shows only after its first look at the file.
      if (synced && connection.pragma('main.synchronous') <= fullSync)
        connection.exec('pragma main.synchronous = full')
      return connection
    } catch (error) {
      connection.handle.close()
      throw error
    }
  }

  function home(): Connection {
    first ??= fresh()
    return first
  }

  return {
    shared: undefined,
    gate: () => {
      gate ??= gateOf(fileOf(home()))
      return gate
    },
    knownGate: () => gate,
    home,
    take: () => {
      const taken = idle ?? fresh()
      idle = undefined
      return taken
    },
    give: (connection) => {
      if (idle === undefined && first !== undefined && !connection.inTransaction()) idle = connection
      else connection.handle.close()
    },
    close: () => {
      for (const connection of [idle, first]) connection?.handle.close()
      idle = undefined
      first = undefined
    },
  }
}

function toWal(connection: Connection): void {
  const [answer] = connection.rows('pragma main.journal_mode = wal')
  if (answer?.journal_mode === 'wal') return
  throw fail('STORE_UNAVAILABLE', {
    detail: 'the database cannot be put into WAL mode: is it on a network file system, or read-only?',
  })
}
