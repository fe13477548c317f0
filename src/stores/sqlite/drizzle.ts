/**
 * Drizzle over better-sqlite3: `tx` is Drizzle's own transaction, over the guarded connection of the attempt.
 *
 * Its transactions are synchronous and cannot be kept open while an attempt runs, so the store begins and ends as over any connection (rule 37). The transaction is made by Drizzle's own
 * session, of which a copy stands on the guarded connection: a query that was built in the work and is run behind its end is refused there (rule 21).
 */
import type { OpenTransaction, Transactions } from '../../store.js'
import { type BetterSqlite3, isHandle, type SqliteHandle } from './handles.js'

/** What is used of a database of `drizzle-orm/better-sqlite3`; a type test holds it against the real one. */
export interface SqliteDrizzle {
  readonly transaction: (...parameters: never[]) => unknown
  readonly $with: unknown
  readonly $client: BetterSqlite3
}

/** What the work writes through: of a connection the connection itself, of a Drizzle its transaction. */
export type SqliteTx<Db extends SqliteHandle | SqliteDrizzle> = Db extends SqliteDrizzle
  ? SqliteDrizzleTx<Db>
  : Db

/** The transaction that `db.transaction` hands over, with the schema of `db`. */
export type SqliteDrizzleTx<Db extends SqliteDrizzle> = Parameters<Db['transaction']>[0] extends (
  tx: infer Tx,
) => unknown
  ? Tx
  : never

interface Session {
  client: unknown
  transaction(work: (tx: object) => void): void
}

/** What is used of it besides, which its types do not show. */
export interface RealDrizzle {
  readonly $client: SqliteHandle
  readonly session: Session
}

export function isDrizzle(given: unknown): given is SqliteDrizzle & RealDrizzle {
  if (typeof given !== 'object' || given === null || !('$with' in given)) return false
  const { $client, session } = given as Partial<RealDrizzle>
  return isHandle($client) && session?.client === $client && typeof session.transaction === 'function'
}

/** The same transactions, with Drizzle's in the place of the connection where there is a database of it that says how. */
export function dressed(
  transactions: Transactions<SqliteHandle>,
  latest: () => RealDrizzle | undefined,
): Transactions<object> {
  return {
    ...transactions,
    begin: async (request) => dress(await transactions.begin(request)),
    within: async (tx, request) => dress(await transactions.within(clientOf(tx), request)),
    open: async (owned, timeoutMs) => dress(await transactions.open(owned, timeoutMs)),
  }

  /** Made when it is asked for: what only looked opens nothing. */
  function dress(open: OpenTransaction<SqliteHandle>): OpenTransaction<object> {
    let tx: object | undefined
    const get = () => {
      const db = latest()
      tx ??= db === undefined ? open.tx : transactionOver(open.tx, db.session)
      return tx
    }
    // As members of its own: who stands around a store spreads what it opens (`withFaults`).
    const members: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(open)
    return Object.defineProperties({}, { ...members, tx: { get, enumerable: true } }) as typeof open
  }
}

/** The connection behind a transaction of Drizzle, or behind a database of it on which one was begun by hand. */
function clientOf(tx: unknown): SqliteHandle {
  const { session } = (tx ?? {}) as Partial<RealDrizzle>
  // What is none is told so further on.
  return (session?.client ?? tx) as SqliteHandle
}

/** Drizzle makes one in its function for transactions: for that moment there is a connection that begins nothing. */
function transactionOver(client: SqliteHandle, session: Session): object {
  const begun = (work: (tx: object) => void) => Object.assign(work, { deferred: work })
  const copy: Session = Object.assign(Object.create(Object.getPrototypeOf(session)), session, {
    client: { transaction: begun },
  })
  const made: object[] = []
  copy.transaction((tx) => void made.push(tx))
  copy.client = client
  const [tx] = made
  if (tx === undefined) throw new Error('Drizzle has made no transaction')
  return tx
}
