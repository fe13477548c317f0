import type { Kysely, Transaction } from 'kysely'
import { postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import type { ToolClient } from './client.js'
import { poolOf } from './pool.js'

const kysely = await peer<typeof import('kysely')>('kysely')

interface Tables {
  readonly effect: { readonly key: string; readonly payload: string; readonly generation: number }
  readonly unique_effect: { readonly key: string }
}

export function kyselyOnPool(connectionString: string): ToolClient {
  const { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect, sql } = kysely
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: poolOf(connectionString) }),
    // What they do to rows must not be done to ours.
    plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
  })
  return {
    handle: db,
    store: (options) => postgres(db, options),
    insert: (tx, effect) => ((tx ?? db) as Kysely<Tables>).insertInto('effect').values(effect).execute(),
    insertUnique: (tx, key) =>
      (tx as Transaction<Tables>).insertInto('unique_effect').values({ key }).execute(),
    violation: 'DatabaseError',
    build: (tx, effect) => {
      const query = (tx as Transaction<Tables>).insertInto('effect').values(effect)
      return () => query.execute()
    },
    // In `transaction().execute()` Kysely has savepoints as statements only.
    nested: async (tx, work) => {
      const run = (text: string) => sql.raw(text).execute(tx as Transaction<Tables>)
      await run('savepoint own')
      try {
        await work(tx)
      } catch (error) {
        await run('rollback to savepoint own')
        throw error
      }
      await run('release savepoint own')
    },
    transaction: (work) => db.transaction().execute(work),
    end: () => db.destroy(),
  }
}
