/** Drizzle, over any of its drivers that runs interactive transactions. */
import { firstOf, hasFunctions, type KnownTool, known, rowsOf, type SqlAnswer } from './tool.js'

/** What is used of a database of Drizzle; a type test holds it against the real ones. */
export interface DrizzleDb {
  readonly transaction: (...parameters: never[]) => Promise<unknown>
  readonly execute: (query: string) => PromiseLike<unknown>
  readonly $with: unknown
}

/** What the work writes through: the transaction that `db.transaction` hands over, with the schema of `db`. */
export type DrizzleTx<Db extends DrizzleDb> = Parameters<Db['transaction']>[0] extends (
  tx: infer Tx,
) => unknown
  ? Tx
  : never

interface Real {
  transaction<Value>(work: (tx: Real) => Promise<Value>, config?: object): Promise<Value>
  execute(query: string): PromiseLike<unknown>
  /** The database behind `withReplicas`: a replica is late. */
  readonly $primary?: Real
  readonly session?: Session
  readonly $client?: object
}

interface Session {
  prepareQuery(query: { readonly sql: string }, ...rest: unknown[]): unknown
}

// Drizzle marks its classes with it, so that two copies of it know each other's.
const kind = Symbol.for('drizzle:entityKind')

export function drizzle(handle: unknown): KnownTool | undefined {
  if (!hasFunctions(handle, ['transaction', 'execute', '$with'])) return undefined
  const given = handle as unknown as Real
  const db = given.$primary ?? given
  const kinds = kindsOf(db)
  // A transaction is a database as well.
  if (kinds.length === 0 || kinds.some((name) => name.endsWith('Transaction'))) return undefined
  if (isPool(db.$client)) listen(db.$client)
  /** Set while a statement of ours is prepared, which is not asked for. */
  let ours = false
  const dialect = kinds.find((name) => name in dialects)
  const answerOf = dialect === 'MySqlDatabase' ? firstOf : rowsOf
  return known<Real>(
    'Drizzle',
    dialect,
    {
      transaction: (work, isolationLevel) => db.transaction(work, isolationLevel && { isolationLevel }),
      query,
      seal,
    },
    unfit(db, kinds),
  )

  async function query(tx: Real | undefined, text: string): Promise<SqlAnswer> {
    return answerOf(await sent(tx ?? db, text))
  }

  function sent(through: Real, text: string): PromiseLike<unknown> {
    ours = true
    try {
      return through.execute(text)
    } finally {
      ours = false
    }
  }

  function seal(tx: Real, ask: () => void): Real {
    // Over a single connection it is the session of the database itself, which outlives the attempt.
    if (tx.session !== undefined && tx.session !== db.session)
      sealSession(tx.session, () => {
        if (!ours) ask()
      })
    return tx
  }
}

function unfit(db: Real, kinds: readonly string[]): string | undefined {
  if (isOneClient(db.$client)) return 'over one Client attempts would share its transaction; give it a Pool'
  // Others answer in another way, and some begin no transaction that lasts.
  if (kinds.includes('MySqlDatabase') && !kinds.includes('MySql2Database'))
    return 'of the drivers of Drizzle for MySQL only drizzle-orm/mysql2 is known here'
  return undefined
}

interface Pool {
  on(event: 'error', listener: () => void): unknown
  on(event: 'connect', listener: (client: Pool) => void): unknown
}

function isPool(client: object | undefined): client is object & Pool {
  return hasFunctions(client, ['connect', 'on']) && 'totalCount' in client
}

const ignore = () => undefined
const listened = new WeakSet<object>()

/**
 * Drizzle listens to no client that is checked out, and node-postgres ends the process when the server of such a client goes away (rule 21). Those
 * that were connected before cannot be reached.
 */
function listen(pool: object & Pool): void {
  if (listened.has(pool)) return
  listened.add(pool)
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
}

/** A Client of node-postgres or of something like it: Drizzle begins on it whatever runs there. PGlite puts its transactions in a row. */
function isOneClient(client: object | undefined): boolean {
  if (!hasFunctions(client, ['connect', 'query', 'end'])) return false
  return !('totalCount' in client) && !('waitReady' in client)
}

/**
 * Drizzle itself would send a query that was built in the transaction and is awaited behind its end, also one of a transaction inside it. What ends
 * either passes.
 */
function sealSession(session: Session, ask: () => void): void {
  const prepare = session.prepareQuery
  if (typeof prepare !== 'function') return
  session.prepareQuery = (query, ...rest) => {
    if (!/^(?:commit|rollback|release)\b/i.test(query.sql)) ask()
    return prepare.call(session, query, ...rest)
  }
}

const dialects: Readonly<Record<string, true>> = {
  PgDatabase: true,
  MySqlDatabase: true,
  BaseSQLiteDatabase: true,
}

/** The marks of its class and of those it descends from. */
function kindsOf(db: object): string[] {
  const kinds: string[] = []
  for (let of: object | null = Object.getPrototypeOf(db); of !== null; of = Object.getPrototypeOf(of)) {
    const mark: unknown = (of.constructor as { [kind]?: unknown })[kind]
    if (typeof mark === 'string') kinds.push(mark)
  }
  return kinds
}
