/** Knex. */
import { firstOf, hasFunctions, type KnownTool, known, rowsOf } from './tool.js'

/** What is used of a Knex; a type test holds it against the real one. */
export interface KnexDb {
  readonly transaction: (...parameters: never[]) => Promise<unknown>
  readonly raw: (...parameters: never[]) => unknown
  readonly batchInsert: unknown
}

/** What the work writes through: the `Knex.Transaction` that `knex.transaction` hands over. */
export type KnexTx<Db extends KnexDb> = Parameters<Db['transaction']>[0] extends
  | ((tx: infer Tx) => unknown)
  | undefined
  ? Tx
  : never

interface Real {
  transaction<Value>(work: (tx: Real) => Promise<Value>, config?: object): Promise<Value>
  raw(text: string): PromiseLike<unknown>
  readonly isTransaction?: boolean
  readonly client?: { readonly dialect?: string }
}

export function knex(handle: unknown): KnownTool | undefined {
  // A transaction of Knex is a Knex as well.
  if (!hasFunctions(handle, ['transaction', 'raw', 'batchInsert'])) return undefined
  const db = handle as unknown as Real
  if (db.isTransaction) return undefined
  const dialect = db.client?.dialect
  const answerOf = dialect === 'mysql' ? firstOf : rowsOf
  return known<Real>('Knex', dialect, {
    transaction: (work, isolationLevel) => db.transaction(work, isolationLevel && { isolationLevel }),
    query: async (tx, text) => answerOf(await (tx ?? db).raw(text)),
    ends: ['commit', 'rollback'],
  })
}
