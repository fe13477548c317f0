/** What the tests ask of each tool, in the tool's own words: its models and builders, and not raw statements. */
import type { Effect, OwnTransaction, PostgresOptions, PostgresStore } from '../../../processes/own-name.js'

/** Few enough that the tools and processes of a case leave the shared server room for other test files. */
export const connections = 5

export interface ToolClient {
  /** What its user has in hand. */
  readonly handle: unknown
  store(options?: PostgresOptions): PostgresStore<object>
  /** Through the root client where there is no transaction. */
  insert(tx: object | undefined, effect: Effect): Promise<unknown>
  /** Into the table whose key is unique. */
  insertUnique(tx: object, key: string): Promise<unknown>
  /** The class that the tool raises for a constraint. */
  readonly violation: string
  /** Makes a write in the transaction that is sent later, where the tool has such a thing. */
  build(tx: object, effect: Effect): () => PromiseLike<unknown>
  /** The tool's own savepoint: rolled back where `work` rejects, and then it rejects with the same. */
  nested(tx: object, work: (inner: object) => Promise<unknown>): Promise<unknown>
  /** The tool's own transaction. */
  transaction(work: (tx: object) => Promise<unknown>): Promise<unknown>
  end(): Promise<unknown>
}

/** A transaction of the tool that is ended from outside. */
export function ownOf({ transaction }: ToolClient): Promise<OwnTransaction<object>> {
  return new Promise((resolve, reject) => {
    const ended = transaction(
      (tx) =>
        new Promise<void>((commit, rollback) => {
          resolve({
            tx,
            commit: async () => {
              commit()
              await ended
            },
            rollback: async () => {
              rollback(new Error('rolled back'))
              await ended.catch(() => undefined)
            },
          })
        }),
    )
    ended.catch(reject)
  })
}
