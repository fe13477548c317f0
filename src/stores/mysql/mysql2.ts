/**
 * The driver for mysql2 3, over a pool with promises (`mysql2/promise`) or with callbacks that the user brings. Both have the same pool with callbacks inside, which is
 * what is used here.
 */
import { type Answer, type Connection, type Driver, type Session, textOf } from './driver.js'
import { type Inside, insideOf, notAConnection, type Sending } from './guard.js'
import { type Emitter, sessionOver } from './session.js'

/** What is used of a pool with callbacks; a type test holds it against the real one. */
export interface Mysql2Pool {
  getConnection(callback: (error: NodeJS.ErrnoException | null, connection: object) => void): void
  query: (...parameters: never[]) => unknown
  execute: (...parameters: never[]) => unknown
  promise(): unknown
}

/** What is used of a pool with promises; a type test holds it against the real one. */
export interface Mysql2PromisePool {
  readonly pool: Mysql2Pool
  query: (...parameters: never[]) => unknown
  execute: (...parameters: never[]) => unknown
}

type Done = (error: unknown, result?: unknown) => void

/** A connection with callbacks, as both pools have it inside. */
interface Line extends Emitter {
  query(options: object, done: Done): unknown
  promise(): object
  release?(): void
  destroy(): void
  readonly stream?: { unref?(): void; ref?(): void }
}

/** The kind of connection that a pool's own kind is made from. */
interface Made extends Line {
  connect(done: (error: unknown) => void): void
}

type Making = new (options: object) => Made

/** Not in the types of mysql2: how it makes the connections of a pool. */
interface Maker {
  readonly config: { readonly connectionConfig: object }
}

export function isMysql2(handle: unknown): handle is Mysql2Pool | Mysql2PromisePool {
  return coreOf(handle) !== undefined
}

function coreOf(handle: unknown): Mysql2Pool | undefined {
  if (typeof handle !== 'object' || handle === null) return undefined
  if ('pool' in handle && 'getConnection' in handle) return coreOf(handle.pool)
  const has = (name: string) => typeof (handle as Record<string, unknown>)[name] === 'function'
  return has('getConnection') && has('query') && has('promise') ? (handle as Mysql2Pool) : undefined
}

const ignore = () => undefined
const directly: Sending = (run) => run()

export function mysql2<Tx>(handle: Mysql2Pool | Mysql2PromisePool): Driver<Tx> {
  const core = coreOf(handle)
  if (core === undefined) throw notAConnection()
  const pool = core
  const style = core === handle ? 'callback' : 'promise'
  let made: Making | undefined
  return {
    acquire: async () => {
      const line = await checkOut(pool)
      made ??= makingOf(line)
      const back = { release: () => line.release?.(), destroy: () => line.destroy() }
      return session<Tx>({ connection: line, send: directly }, style, back)
    },
    adopt: (tx) => {
      const own = session<Tx>(insideOf(tx) ?? adopted(tx), style, { release: ignore, destroy: ignore })
      // The connection is the caller's, and so is its end.
      return { ...own, destroy: own.release }
    },
    ...('config' in core ? { dedicate: () => dedicate(pool as Mysql2Pool & Maker, made) } : {}),
  }
}

function checkOut(pool: Mysql2Pool): Promise<Line> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection as Line)))
  })
}

/** The caller's own connection; a pool has `query` as well, but no transaction can be open on it. */
function adopted(tx: unknown): Inside {
  if (typeof tx !== 'object' || tx === null || 'getConnection' in tx) throw notAConnection()
  const line = 'connection' in tx ? tx.connection : tx
  if (typeof line !== 'object' || line === null || !('query' in line && 'promise' in line && 'on' in line))
    throw notAConnection()
  return { connection: line, send: directly }
}

function session<Tx>(
  inside: Inside,
  style: 'callback' | 'promise',
  back: { release(): void; destroy(): void },
): Session<Tx> {
  const line = inside.connection as Line
  const writer = style === 'callback' ? line : line.promise()
  return sessionOver<Tx>({
    inside,
    events: line,
    writer,
    style,
    run: (text) => send(line, text),
    ...back,
  })
}

/** In words, because each of them may be set otherwise for the whole pool. */
const plainly = { rowsAsArray: true, typeCast: true, nestTables: false, namedPlaceholders: false }

function send(line: Line, sql: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    line.query({ sql, ...plainly }, (error, result) => {
      if (error) reject(error)
      else resolve(answerOf(result))
    })
  })
}

function answerOf(result: unknown): Answer {
  if (Array.isArray(result))
    return { rows: result.map((row: readonly unknown[]) => row.map(textOf)), affected: 0 }
  return { rows: [], affected: Number((result as { affectedRows?: number }).affectedRows ?? 0) }
}

function makingOf(line: Line): Making {
  return Object.getPrototypeOf(line.constructor) as Making
}

/**
 * A connection beside the pool, made as the pool makes its own: renewals do not stand behind the work that fills the pool (rule 6). Unreferenced, so that the
 * process can exit while it idles. What it is made by was kept from the claim: the work may hold the whole pool by now.
 */
async function dedicate(pool: Mysql2Pool & Maker, made: Making | undefined): Promise<Connection> {
  const Made = made ?? (await askedOf(pool))
  const line = new Made({ config: pool.config.connectionConfig })
  line.on('error', ignore)
  await new Promise<void>((resolve, reject) => {
    line.connect((error) => (error ? reject(error) : resolve()))
  })
  line.stream?.unref?.()
  const run = async (text: string) => {
    line.stream?.ref?.()
    try {
      return await send(line, text)
    } finally {
      line.stream?.unref?.()
    }
  }
  return { run, release: () => line.destroy(), destroy: () => line.destroy() }
}

/** Of a store that has claimed nothing yet. */
async function askedOf(pool: Mysql2Pool): Promise<Making> {
  const line = await checkOut(pool)
  line.release?.()
  return makingOf(line)
}
