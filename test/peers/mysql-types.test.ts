/** Our restatement of the clients' types, held against the real ones: drift fails this build, not the user's. */
import type * as Mariadb from 'mariadb'
import type * as Callbacks from 'mysql2'
import type * as Promises from 'mysql2/promise'
import { expectTypeOf, test } from 'vitest'
import {
  type MariadbPool,
  type Mysql2Pool,
  type Mysql2PromisePool,
  type MysqlHandle,
  type MysqlTx,
  mysql,
} from '../../dist/stores/mysql.js'

test('the pools of mysql2 and of mariadb fit what the store asks for', () => {
  expectTypeOf<Promises.Pool>().toExtend<Mysql2PromisePool>()
  expectTypeOf<Callbacks.Pool>().toExtend<Mysql2Pool>()
  expectTypeOf<Mariadb.Pool>().toExtend<MariadbPool>()
})

test("the work's tx has the methods of the pool, with all their overloads", () => {
  expectTypeOf<MysqlTx<Promises.Pool>>().toEqualTypeOf<Pick<Promises.Pool, 'query' | 'execute'>>()
  expectTypeOf<MysqlTx<Callbacks.Pool>>().toEqualTypeOf<Pick<Callbacks.Pool, 'query' | 'execute'>>()
  expectTypeOf<MysqlTx<Mariadb.Pool>>().toEqualTypeOf<Pick<Mariadb.Pool, 'query' | 'execute' | 'batch'>>()
})

test('a connection of the pool is a transaction to work `within`', () => {
  type TxOf<Pool extends MysqlHandle> = MysqlTx<Pool>
  expectTypeOf<Promises.PoolConnection>().toExtend<TxOf<Promises.Pool>>()
  expectTypeOf<Callbacks.PoolConnection>().toExtend<TxOf<Callbacks.Pool>>()
  expectTypeOf<Mariadb.PoolConnection>().toExtend<TxOf<Mariadb.Pool>>()
  const use = async (pool: Promises.Pool, second: Mariadb.Pool) => {
    const store = mysql(pool, { renewalPool: second })
    const { tx } = await store.transactions.open({ identity: { key: 'k', scope: 's' }, owner: 'o' }, 1)
    const [rows] = await tx.query<(Promises.RowDataPacket & { id: number })[]>('select id')
    expectTypeOf(rows[0]?.id).toEqualTypeOf<number | undefined>()
  }
  expectTypeOf(use).toBeFunction()
})

test('what is no pool does not compile', () => {
  const use = (connection: Promises.Connection, other: Mariadb.Connection) => {
    // @ts-expect-error a connection is no pool
    mysql(connection)
    // @ts-expect-error a connection is no pool
    mysql(other)
  }
  expectTypeOf(use).toBeFunction()
})
