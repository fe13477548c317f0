/**
 * The driver for node-postgres (`pg` 8.11 and later), over a Pool that the user brings.
 *
 * A checked-out client always has an error listener: without one, a server that goes away ends the process (rule 21). A connection
 * that failed is destroyed, never given back: the pool would hand it to somebody who knows nothing of its past.
 */
import type { Call, Driver, Flown, Result, Session } from './driver.js'
import { type Flight, flight } from './flight.js'
import { guardTx, insideOf, type Sending } from './guard.js'

/** What is used of a node-postgres client; a type test holds it against the real one. */
export interface PgClient {
  query(flight: Flight): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** A client out of a pool. */
export interface PgPoolClient extends PgClient {
  release(destroy?: boolean): void
}

/** What is used of a node-postgres Pool; a type test holds it against the real one. */
export interface PgPool {
  connect(callback: (error: Error | undefined, client: PgPoolClient | undefined) => void): void
  query: (...parameters: never[]) => unknown
  /** Tells a Pool from a Client. */
  readonly totalCount: number
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** What the work writes through: `query` with all the overloads of the pool that was passed in. */
export interface PgTx<Pool extends PgPool> {
  readonly query: Pool['query']
}

interface OwnClient extends PgClient {
  connect(): Promise<unknown>
  end(): Promise<unknown>
  ref?(): void
  unref?(): void
}

/** In node-postgres since 8.0, but not in its types. */
interface ClientMaker {
  readonly Client: new (options: unknown) => OwnClient
  readonly options: unknown
}

/** Tells a Pool from a Client, which has `connect` and `query` too, by `totalCount`. */
export function isPool(handle: unknown): handle is PgPool {
  if (typeof handle !== 'object' || handle === null) return false
  return ['connect', 'query', 'on', 'totalCount'].every((name) => name in handle)
}

const ignore = () => {}
const listened = new WeakSet<object>()

export function nodePostgres<Pool extends PgPool>(pool: Pool, prepare: boolean): Driver<PgTx<Pool>> {
  // An idle client that dies makes the pool emit `error`, and without a listener that ends the process. The pool drops such a client
  // by itself, so there is nothing to do but to be there. Once per pool: stores may share one.
  if (!listened.has(pool)) {
    listened.add(pool)
    pool.on('error', ignore)
  }
  return {
    beginsAnew: true,
    tellsEnd: true,
    acquire,
    adopt: (tx) => {
      const adopted = session<Pool>(insideOf(tx), prepare, { release: ignore, destroy: ignore })
      // The client is the caller's, and so is its end.
      return { ...adopted, destroy: adopted.release }
    },
    ...(makesClients(pool) ? { dedicate: () => dedicate<Pool>(pool, prepare) } : {}),
  }

  /**
   * By callback, which node-postgres calls at once: a promise is told one turn later, and a server that is shutting down may have said so
   * in the packet that completed the connection, when nobody listens yet.
   */
  function acquire(): Promise<Session<PgTx<Pool>>> {
    return new Promise((resolve, reject) => {
      pool.connect((error, client) => {
        if (client === undefined) return reject(error)
        const back = { release: () => client.release(), destroy: () => client.release(true) }
        resolve(session<Pool>({ client, send: undefined }, prepare, back))
      })
    })
  }
}

function makesClients(pool: object): pool is ClientMaker {
  return 'Client' in pool && typeof pool.Client === 'function' && 'options' in pool
}

/** Unreferenced, so that the process can exit while it idles. */
async function dedicate<Pool extends PgPool>(
  { Client, options }: ClientMaker,
  prepare: boolean,
): Promise<Session<PgTx<Pool>>> {
  const client = new Client(options)
  client.on('error', ignore)
  await client.connect()
  client.unref?.()
  const end = () => {
    client.end().catch(ignore)
  }
  const send: Sending = async (run) => {
    client.ref?.()
    try {
      return await run()
    } finally {
      client.unref?.()
    }
  }
  return session<Pool>({ client, send }, prepare, { release: end, destroy: end })
}

function session<Pool extends PgPool>(
  { client, send }: { client: PgClient; send: Sending | undefined },
  prepare: boolean,
  back: { release(): void; destroy(): void },
): Session<PgTx<Pool>> {
  let cause: unknown
  let given = false
  const listeners: ((cause: unknown) => void)[] = []
  const onError = (error: unknown) => {
    if (cause !== undefined) return
    cause = error
    for (const listener of listeners) listener(error)
  }
  client.on('error', onError)
  return {
    flight: fly,
    guard: () => guardTx<PgTx<Pool>>(client, send),
    lost: () => cause,
    onLost,
    release,
    destroy,
  }

  function fly(calls: readonly Call[]): Promise<Flown> {
    if (send === undefined) return flown(calls)
    return send(() => flown(calls)).catch((error: unknown) => ({ failure: { index: 0, error } }))
  }

  function flown(calls: readonly Call[]): Promise<Flown> {
    return takesFlights(client) ? oneFlight(client, calls, prepare) : oneByOne(client, calls)
  }

  function onLost(listener: (cause: unknown) => void): void {
    if (cause === undefined) listeners.push(listener)
    else listener(cause)
  }

  function release(): void {
    if (given) return
    given = true
    listeners.length = 0
    client.removeListener('error', onError)
    back.release()
  }

  /** The listener stays: a socket may report its end after it was given up. */
  function destroy(): void {
    if (given) return
    given = true
    listeners.length = 0
    back.destroy()
  }
}

/** Clients in pipeline mode refuse custom queries, and the native client has no `Connection`. */
function takesFlights(client: PgClient): boolean {
  return 'connection' in client && !('pipeline' in client && client.pipeline === true)
}

function oneFlight(client: PgClient, calls: readonly Call[], prepare: boolean): Promise<Flown> {
  return new Promise((land) => {
    try {
      client.query(flight(calls, prepare, land))
    } catch (error) {
      land({ failure: { index: 0, error } })
    }
  })
}

/** The same with a round trip for each statement; like a flight it stops at the first failure. */
async function oneByOne(client: PgClient, calls: readonly Call[]): Promise<Flown> {
  const query = client.query as (config: object) => unknown
  const results: Result[] = []
  for (const { statement, values } of calls) {
    const config = { text: statement.text, values, rowMode: 'array', types: { getTypeParser: () => asText } }
    try {
      const { rows, command } = (await query.call(client, config)) as {
        rows: Result['rows']
        command: string
      }
      results.push({ rows, tag: command })
    } catch (error) {
      return { failure: { index: results.length, error } }
    }
  }
  return { results }
}

function asText(value: unknown): unknown {
  return value
}
