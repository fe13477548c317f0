/** What of the tools `mysql()` takes, and the types of what it gives for them: drift fails this build, not the user's. */
import { drizzle, type MySql2Database } from 'drizzle-orm/mysql2'
import makeKnex, { type Knex } from 'knex'
import type { Kysely, Transaction } from 'kysely'
import { createConnection } from 'mysql2/promise'
import type { DataSource, EntityManager } from 'typeorm'
import { expect, expectTypeOf, test } from 'vitest'
import { type MysqlHandle, type MysqlTx, mysql } from '../../dist/stores/mysql.js'
import { startMariadb } from '../../servers/mariadb.js'
import { noMariadb } from './mysql-suite.js'
import { promisePool } from './processes/mysql-store.js'

test.skipIf(noMariadb !== undefined)(
  'a pool without autocommit is refused under a tool, and so is what no tool of ours knows',
  async () => {
    const server = await startMariadb()
    const db = drizzle(promisePool(server.url, ['set autocommit = 0']))
    await expect(mysql(db).migrate()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await db.$client.end()
    const single = await createConnection(server.url)
    expect(() => mysql(drizzle(single))).toThrow('give it a Pool')
    await single.end()
    await server.stop()
    const foreign = makeKnex({ client: 'pg' })
    expect(() => mysql(foreign)).toThrow('for another database')
    await foreign.destroy()
  },
)

test('tx has the type of the transaction of the tool', () => {
  type Tables = { readonly effect: { readonly key: string } }
  type Given<Handle> = MysqlTx<Handle>
  expectTypeOf<Given<Kysely<Tables>>>().toEqualTypeOf<Transaction<Tables>>()
  expectTypeOf<Given<Knex>>().toEqualTypeOf<Knex.Transaction>()
  expectTypeOf<Given<DataSource>>().toEqualTypeOf<EntityManager>()
  expectTypeOf<Given<MySql2Database>['insert']>().toEqualTypeOf<MySql2Database['insert']>()
  const use = (db: MySql2Database) =>
    db.transaction(async (tx) => expectTypeOf(tx).toExtend<Given<MySql2Database>>())
  expectTypeOf(use).toBeFunction()
  expectTypeOf<MySql2Database | Kysely<Tables> | Knex | DataSource>().toExtend<MysqlHandle>()
})
