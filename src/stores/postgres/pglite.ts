/**
 * PGlite: PostgreSQL inside the process, with one connection for everything.
 *
 * Transactions and statements run one after the other, each when the one before has ended. So two attempts are never under way together in
 * transaction mode, and a statement from inside a transaction's work would wait for that work: it gives up after `answerTimeoutMs`.
 */
import type { Driver } from './driver.js'
import { toolDriver } from './tool.js'

/** What is used of PGlite; a type test holds it against the real one. */
export interface Pglite {
  readonly transaction: (...parameters: never[]) => Promise<unknown>
  readonly query: (text: string) => Promise<{ readonly rows: readonly unknown[] }>
  readonly waitReady: Promise<void>
  readonly dataDir?: string | undefined
}

/** What the work writes through: the `Transaction` of PGlite. */
export type PgliteTx<Db extends Pglite> = Parameters<Db['transaction']>[0] extends (tx: infer Tx) => unknown
  ? Tx
  : never

interface Transactions<Tx> {
  transaction<Value>(work: (tx: Tx) => Promise<Value>): Promise<Value>
}

interface Queries {
  query(text: string): Promise<{ readonly rows: readonly object[] }>
}

/** Tells PGlite by what it waits for before it can be asked. */
export function isPglite(handle: unknown): handle is Pglite {
  if (typeof handle !== 'object' || handle === null) return false
  return ['transaction', 'query', 'waitReady'].every((name) => name in handle)
}

export function pgliteDriver<Db extends Pglite>(db: Db): Driver<PgliteTx<Db>> {
  const transactions = db as unknown as Transactions<PgliteTx<Db>>
  return toolDriver<PgliteTx<Db>>({
    transaction: (work) => transactions.transaction(work),
    query: async (tx, text) => (await ((tx ?? db) as Queries).query(text)).rows,
  })
}

/** Whether what was acknowledged outlives the process: not in memory, which is where it lies unless a directory is named. */
export function isPersistent({ dataDir }: Pglite): boolean {
  return dataDir !== undefined && dataDir !== '' && !dataDir.startsWith('memory://')
}
