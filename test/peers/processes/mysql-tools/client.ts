/** What the tests ask of each tool on MySQL, in the tool's own words: its models and builders, and not raw statements. */
import type { Effect, MysqlOptions, MysqlStore, OwnTransaction } from '../../../processes/own-mysql.js'

/** Few enough that the tools and processes of a case leave the server room. */
export const connections = 5

export interface MysqlToolClient {
  store(options?: MysqlOptions): MysqlStore<object>
  /** Through the root client where there is no transaction. */
  insert(tx: object | undefined, effect: Effect): Promise<unknown>
  /** Into the table whose key is unique. */
  insertUnique(tx: object, key: string): Promise<unknown>
  /** Any statement. */
  run(tx: object, text: string): Promise<unknown>
  /** The class that the tool raises for a constraint. */
  readonly violation: string
  /** The tool's own savepoint: rolled back where `work` rejects, and then it rejects with the same. */
  nested(tx: object, work: (inner: object) => Promise<unknown>): Promise<unknown>
  /** The tool's own transaction. */
  transaction(work: (tx: object) => Promise<unknown>): Promise<unknown>
  end(): Promise<unknown>
}

/** A transaction of the tool that is ended from outside. */
export function ownOf({ transaction }: MysqlToolClient): Promise<OwnTransaction<object>> {
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

/** Savepoints as statements, for what has no function of its own. */
export async function savepoint(run: (text: string) => Promise<unknown>, work: () => Promise<unknown>) {
  await run('savepoint own')
  try {
    await work()
  } catch (error) {
    await run('rollback to savepoint own')
    throw error
  }
  await run('release savepoint own')
}
