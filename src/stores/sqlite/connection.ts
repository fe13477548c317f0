/** One connection, whichever driver it is of: statements with named values, rows as objects. */
import type { Row, SqliteHandle, Value } from './handles.js'

export type Values = Readonly<Record<string, Value>>

export interface Connection {
  readonly handle: SqliteHandle
  /**
   * Runs one statement to its end and gives its rows. To the end, because a statement with RETURNING that is left after its first row tells nobody of a
   * COMMIT that failed.
   */
  rows(text: string, values?: Values): readonly Row[]
  /** Runs statements without values. */
  exec(text: string): void
  inTransaction(): boolean
  /** The number of a pragma; 0 where it has none. */
  pragma(name: string): number
  /**
   * Runs something with a busy timeout of 0: the busy handler of SQLite sleeps in the only thread there is, and would stop the very owner
   * that it waits for (rule 37). The setting is put back in the same breath.
   */
  quietly<T>(run: () => T): T
}

/** The functions of both drivers, where they agree. */
interface Statement {
  all(values?: Values): readonly Row[]
  setReadBigInts?(on: boolean): void
  setReturnArrays?(on: boolean): void
  setAllowBareNamedParameters?(on: boolean): void
}

const known = new WeakMap<SqliteHandle, Connection>()

/** The connection of a handle; the same one for the same handle, so that its statements are prepared once. */
export function connectionOf(handle: SqliteHandle): Connection {
  const found = known.get(handle)
  if (found !== undefined) return found
  const connection = create(handle)
  known.set(handle, connection)
  return connection
}

function create(handle: SqliteHandle): Connection {
  const statements = new Map<string, Statement>()

  function prepared(text: string): Statement {
    const ready = statements.get(text)
    if (ready !== undefined) return ready
    const statement = handle.prepare(text) as Statement
    // A user of node:sqlite may have set other defaults for the whole connection.
    statement.setReadBigInts?.(false)
    statement.setReturnArrays?.(false)
    statement.setAllowBareNamedParameters?.(true)
    statements.set(text, statement)
    return statement
  }

  function rows(text: string, values?: Values): readonly Row[] {
    return values === undefined ? prepared(text).all() : prepared(text).all(wholeNumbers(values))
  }

  function pragma(name: string): number {
    const [row] = rows(`pragma ${name}`)
    return row === undefined ? 0 : Number(Object.values(row)[0])
  }

  function quietly<T>(run: () => T): T {
    const before = pragma('busy_timeout')
    if (before === 0) return run()
    handle.exec('pragma busy_timeout = 0')
    try {
      return run()
    } finally {
      handle.exec(`pragma busy_timeout = ${before}`)
    }
  }

  return {
    handle,
    rows,
    exec: (text) => void handle.exec(text),
    // `node:sqlite` throws where a closed connection is asked.
    inTransaction: () =>
      'inTransaction' in handle ? handle.inTransaction : handle.isOpen && handle.isTransaction,
    pragma,
    quietly,
  }
}

/** Both drivers bind a large number as a float; as a bigint it stays what it is. */
function wholeNumbers(values: Values): Values {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === 'number' ? BigInt(value) : value]),
  )
}
