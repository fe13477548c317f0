/** The driver for MariaDB's own connector (`mariadb` 3), over a pool with promises that the user brings. */
import { type Answer, type Driver, type Session, textOf } from './driver.js'
import { type Inside, insideOf, notAConnection, type Sending } from './guard.js'
import { type Emitter, sessionOver } from './session.js'

/** What is used of the connector's pool; a type test holds it against the real one. */
export interface MariadbPool {
  getConnection(): Promise<MariadbPoolConnection>
  query: (...parameters: never[]) => unknown
  execute: (...parameters: never[]) => unknown
  batch: (...parameters: never[]) => unknown
  /** Tells a pool from a connection. */
  activeConnections(): number
}

/** A connection out of that pool. */
export interface MariadbPoolConnection {
  query(options: { readonly sql: string }): Promise<unknown>
  release(): Promise<void>
  destroy(): void
}

type Line = MariadbPoolConnection & Emitter

export function isMariadb(handle: unknown): handle is MariadbPool {
  if (typeof handle !== 'object' || handle === null) return false
  if (!['getConnection', 'query', 'batch', 'activeConnections'].every((name) => name in handle)) return false
  // The pool with callbacks looks the same, but for the callback that it takes.
  return (handle as MariadbPool).getConnection.length === 0
}

const ignore = () => undefined
const directly: Sending = (run) => run()

const listened = new WeakSet<object>()

export function mariadb<Tx>(pool: MariadbPool): Driver<Tx> {
  // A pool that cannot connect emits `error`, and without a listener that ends the process. It tries again by itself, and whoever waits for a connection is told, so there is
  // nothing to do but to be there. Once per pool: stores may share one. The event is not in its types.
  if (!listened.has(pool) && 'on' in pool && typeof pool.on === 'function') {
    listened.add(pool)
    pool.on('error', ignore)
  }
  return {
    acquire: async () => {
      const line = await pool.getConnection()
      const back = {
        release: () => void line.release().catch(ignore),
        destroy: () => line.destroy(),
      }
      return session<Tx>({ connection: line, send: directly }, back)
    },
    adopt: (tx) => {
      const own = session<Tx>(insideOf(tx) ?? adopted(tx), { release: ignore, destroy: ignore })
      // The connection is the caller's, and so is its end.
      return { ...own, destroy: own.release }
    },
  }
}

/** The caller's own connection; a pool has `query` as well, but no transaction can be open on it. */
function adopted(tx: unknown): Inside {
  if (typeof tx !== 'object' || tx === null || 'getConnection' in tx) throw notAConnection()
  if (!('query' in tx && 'batch' in tx && 'on' in tx)) throw notAConnection()
  return { connection: tx, send: directly }
}

function session<Tx>(inside: Inside, back: { release(): void; destroy(): void }): Session<Tx> {
  const line = inside.connection as Line
  return sessionOver<Tx>({
    inside,
    events: line,
    writer: line,
    style: 'promise',
    run: (text) => send(line, text),
    ...back,
  })
}

/** In words, because each of them may be set otherwise for the whole pool. */
const plainly = { rowsAsArray: true, typeCast: undefined, nestTables: false, metaAsArray: false }

async function send(line: Line, sql: string): Promise<Answer> {
  const result = await line.query({ sql, ...plainly })
  if (Array.isArray(result))
    return { rows: result.map((row: readonly unknown[]) => row.map(textOf)), affected: 0 }
  return { rows: [], affected: Number((result as { affectedRows?: number }).affectedRows ?? 0) }
}
