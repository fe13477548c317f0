/** Kysely 0.28 and later. */
import { hasFunctions, type Isolation, type KnownTool, known, type SqlAnswer } from './tool.js'

/** What is used of a Kysely; a type test holds it against the real one. */
export interface KyselyDb {
  readonly transaction: () => { readonly execute: (...parameters: never[]) => Promise<unknown> }
  readonly executeQuery: (...parameters: never[]) => Promise<unknown>
  readonly isTransaction: boolean
}

/** What the work writes through: the `Transaction` of Kysely, with the tables of `db`. */
export type KyselyTx<Db extends KyselyDb> = Parameters<ReturnType<Db['transaction']>['execute']>[0] extends (
  tx: infer Tx,
) => unknown
  ? Tx
  : never

interface Beginning {
  setIsolationLevel(level: Isolation): Beginning
  execute<Value>(work: (tx: Real) => Promise<Value>): Promise<Value>
}

interface Result {
  readonly rows: readonly object[]
  readonly numAffectedRows?: bigint
}

interface Real {
  transaction(): Beginning
  executeQuery(compiled: object): Promise<Result>
  withoutPlugins(): Real
  withPlugin(plugin: object): Real
  getExecutor(): { readonly adapter: { supportsTransactionalDdl?: boolean; supportsReturning?: boolean } }
}

export function kysely(handle: unknown): KnownTool | undefined {
  if (!hasFunctions(handle, ['transaction', 'executeQuery', 'withoutPlugins', 'getExecutor']))
    return undefined
  if ((handle as unknown as KyselyDb).isTransaction) return undefined
  const db = handle as unknown as Real
  return known<Real>('Kysely', dialectOf(db), {
    transaction: (work, isolation) => {
      const beginning = db.transaction()
      return (isolation ? beginning.setIsolationLevel(isolation) : beginning).execute(work)
    },
    // The user's plugins are for the user's rows: one that parses JSON would make objects of keys that look like it.
    query: async (tx, text) => answerOf(await (tx ?? db).withoutPlugins().executeQuery(compiled(text))),
    // Kysely itself would send a query that was built in the transaction and is executed behind its end.
    seal: (tx, ask) => tx.withPlugin(asking(ask)),
  })
}

/** A plugin that changes nothing: it is called for each query when it is compiled, which is when it is executed. */
function asking(ask: () => void): object {
  return {
    transformQuery: ({ node }: { readonly node: unknown }) => {
      ask()
      return node
    },
    transformResult: async ({ result }: { readonly result: unknown }) => result,
  }
}

/** A server that gives rows may tell their number too. */
function answerOf({ rows, numAffectedRows }: Result): SqlAnswer {
  if (numAffectedRows === undefined || rows.length > 0) return rows
  return { affectedRows: Number(numAffectedRows) }
}

/** What `CompiledQuery.raw(text)` of Kysely makes. */
function compiled(text: string): object {
  const parameters: readonly unknown[] = []
  const query = { kind: 'RawNode', sqlFragments: [text], parameters }
  return { sql: text, parameters, query, queryId: { queryId: 'retrysafe' } }
}

/** Kysely has no name for it; what its adapter says of the database tells the four it knows apart. */
function dialectOf(db: Real): string {
  const { supportsTransactionalDdl, supportsReturning } = db.getExecutor().adapter
  if (supportsReturning === true) return supportsTransactionalDdl === true ? 'postgres' : 'sqlite'
  return supportsTransactionalDdl === true ? 'mssql' : 'mysql'
}
