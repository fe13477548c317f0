/** Any other tool, by the two functions that it is asked for: here the plainest there is. */
import type { PoolConnection } from 'mysql2/promise'
import { type MysqlTool, mysql } from '../../../processes/own-mysql.js'
import { promisePool } from '../mysql-store.js'
import { type MysqlToolClient, savepoint } from './client.js'

export function recipeOnMysql2(url: string): MysqlToolClient {
  const pool = promisePool(url)
  const tool: MysqlTool<PoolConnection> = {
    transaction: async (work) => {
      const connection = await pool.getConnection()
      try {
        await connection.query('set transaction isolation level read committed')
        await connection.beginTransaction()
        await work(connection)
        await connection.commit()
      } catch (error) {
        await connection.rollback()
        throw error
      } finally {
        connection.release()
      }
    },
    query: async (tx, text) => {
      const [answer] = await (tx ?? pool).query(text)
      return answer as object[]
    },
  }
  const over = (tx: object | undefined) => (tx ?? pool) as PoolConnection
  const insert = 'insert into effect (`key`, payload, generation) values (?, ?, ?)'
  return {
    store: (options) => mysql(tool, options),
    insert: (tx, { key, payload, generation }) => over(tx).execute(insert, [key, payload, generation]),
    insertUnique: (tx, key) => over(tx).execute('insert into unique_effect (`key`) values (?)', [key]),
    run: (tx, text) => over(tx).query(text),
    violation: 'Error',
    nested: (tx, work) =>
      savepoint(
        (text) => over(tx).query(text),
        () => work(tx),
      ),
    transaction: (work) => tool.transaction(work),
    end: () => pool.end(),
  }
}
