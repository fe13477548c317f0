/** Drizzle, over any of its drivers that runs interactive transactions. */
import { hasFunctions, type KnownTool, known, rowsOf } from './tool.js'

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
  transaction<Value>(work: (tx: Real) => Promise<Value>): Promise<Value>
  execute(query: string): PromiseLike<unknown>
  /** The database behind `withReplicas`: a replica is late. */
  readonly $primary?: Real
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
  return known<Real>(
    'Drizzle',
    kinds.find((name) => name in dialects),
    {
      transaction: (work) => db.transaction(work),
      query: async (tx, text) => rowsOf(await (tx ?? db).execute(text)),
    },
  )
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
