import type { Kysely } from 'kysely'
import { mysql } from '../../../processes/own-mysql.js'
import { promisePool } from '../mysql-store.js'
import { peer } from '../peer.js'
import { type MysqlToolClient, savepoint } from './client.js'

const kysely = await peer<typeof import('kysely')>('kysely')

interface Tables {
  readonly effect: { readonly key: string; readonly payload: string; readonly generation: number }
  readonly unique_effect: { readonly key: string }
}

export function kyselyOnMysql2(url: string): MysqlToolClient {
  const { CamelCasePlugin, Kysely, MysqlDialect, ParseJSONResultsPlugin, sql } = kysely
  const db = new Kysely<Tables>({
    dialect: new MysqlDialect({ pool: promisePool(url).pool }),
    // What they do to rows must not be done to ours.
    plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
  })
  const run = (tx: object, text: string) => sql.raw(text).execute(tx as Kysely<Tables>)
  return {
    store: (options) => mysql(db, options),
    insert: (tx, effect) => ((tx ?? db) as Kysely<Tables>).insertInto('effect').values(effect).execute(),
    insertUnique: (tx, key) => (tx as Kysely<Tables>).insertInto('unique_effect').values({ key }).execute(),
    run,
    violation: 'Error',
    nested: (tx, work) =>
      savepoint(
        (text) => run(tx, text),
        () => work(tx),
      ),
    transaction: (work) => db.transaction().execute(work),
    end: () => db.destroy(),
  }
}
