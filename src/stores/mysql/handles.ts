/** Which driver a handle gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import { knownTool, misfit, type ToolHandle, type ToolTx } from '../tools/known.js'
import type { PrismaDb } from '../tools/prisma.js'
import type { KnownTool } from '../tools/tool.js'
import type { Driver } from './driver.js'
import { isMariadb, type MariadbPool, mariadb } from './mariadb.js'
import { isMysql2, type Mysql2Pool, type Mysql2PromisePool, mysql2 } from './mysql2.js'
import { isTool, type MysqlTool, toolDriver } from './tool.js'

/** A pool that {@link mysql} knows by its shape. */
export type MysqlPool = Mysql2PromisePool | Mysql2Pool | MariadbPool

/** A pool or a tool that {@link mysql} knows by its shape. */
export type MysqlHandle = MysqlPool | Exclude<ToolHandle, PrismaDb>

/**
 * What the work writes through: of a pool `query`, `execute` and, over the connector of MariaDB, `batch`, with all its overloads; of a tool its own
 * transaction.
 */
export type MysqlTx<Handle> = Handle extends MysqlPool
  ? Pick<Handle, Extract<keyof Handle, 'query' | 'execute' | 'batch'>>
  : ToolTx<Handle>

export function driverFor<Tx>(handle: MysqlHandle | MysqlTool<Tx>): Driver<Tx> {
  // What `Tx` is for each handle is said by the signatures of `mysql`.
  return found(handle) as Driver<Tx>
}

function found(handle: unknown): Driver<unknown> {
  if (isMysql2(handle)) return mysql2(handle)
  if (isMariadb(handle)) return mariadb(handle)
  const known = knownTool(handle)
  const why = known === undefined ? misfit(handle) : (known.unfit ?? foreign(known))
  if (why !== undefined) throw fail('OPTION_INVALID', { detail: why })
  if (known !== undefined) return toolDriver(known.tool)
  if (isTool(handle)) return toolDriver(handle)
  throw fail('OPTION_INVALID', { detail: taken })
}

const taken =
  'mysql() takes a pool of mysql2, of mysql2/promise, or of mariadb, a Drizzle, a Kysely, a Knex, a DataSource of TypeORM, or { transaction, query }'

/** What tools call MySQL and MariaDB. */
const dialects: readonly string[] = ['MySqlDatabase', 'mysql', 'mariadb']

function foreign({ name, dialect }: KnownTool): string | undefined {
  // Its driver for MariaDB was not there to be tested, and it tells how many rows were changed in another way.
  if (name === 'Prisma') return 'Prisma is not known here: pass { transaction, query }'
  if (dialect === undefined || dialects.includes(dialect)) return undefined
  return `this ${name} is for another database, or another client: ${dialect}`
}
