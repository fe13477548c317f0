/** Which driver a handle gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import type { Driver } from './driver.js'
import { isMariadb, type MariadbPool, mariadb } from './mariadb.js'
import { isMysql2, type Mysql2Pool, type Mysql2PromisePool, mysql2 } from './mysql2.js'

/** A pool that {@link mysql} knows by its shape. */
export type MysqlHandle = Mysql2PromisePool | Mysql2Pool | MariadbPool

/** What the work writes through: `query`, `execute` and, over the connector of MariaDB, `batch`, with all the overloads of the pool that was passed in. */
export type MysqlTx<Pool extends MysqlHandle> = Pick<Pool, Extract<keyof Pool, 'query' | 'execute' | 'batch'>>

export function driverFor<Tx>(handle: unknown): Driver<Tx> {
  if (isMysql2(handle)) return mysql2<Tx>(handle)
  if (isMariadb(handle)) return mariadb<Tx>(handle)
  throw fail('OPTION_INVALID', {
    detail: 'mysql() takes a pool of mysql2, of mysql2/promise, or of mariadb',
  })
}
