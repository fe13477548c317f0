/** Which driver a handle gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import { knownTool, misfit, type ToolHandle, type ToolTx } from '../tools/known.js'
import type { KnownTool } from '../tools/tool.js'
import type { Driver } from './driver.js'
import { isPool, nodePostgres, type PgPool, type PgTx } from './node-postgres.js'
import { isPersistent, isPglite, type Pglite, type PgliteTx, pgliteDriver } from './pglite.js'
import { isPostgresJs, type PostgresJs, type PostgresJsTx, postgresJs } from './postgres-js.js'
import { isTool, type PostgresTool, toolDriver } from './tool.js'

/** A client or a tool that {@link postgres} knows by its shape. */
export type PostgresHandle = PgPool | PostgresJs | Pglite | ToolHandle

/** What the work writes through, by the handle. */
export type PostgresTx<Handle> = Handle extends PostgresJs
  ? PostgresJsTx<Handle>
  : Handle extends PgPool
    ? PgTx<Handle>
    : Handle extends Pglite
      ? PgliteTx<Handle>
      : ToolTx<Handle>

interface Found<Tx> {
  readonly driver: Driver<Tx>
  /** Whether what was acknowledged outlives the process that the database runs in. */
  readonly survivesCrash: boolean
}

export function driverFor<Tx>(handle: PostgresHandle | PostgresTool<Tx>, prepare: boolean): Found<Tx> {
  // What `Tx` is for each handle is said by the signatures of `postgres`.
  return found(handle, prepare) as Found<Tx>
}

function found(handle: unknown, prepare: boolean): Found<unknown> {
  if (isPool(handle)) return { driver: nodePostgres(handle, prepare), survivesCrash: true }
  if (isPostgresJs(handle)) return { driver: postgresJs(handle, prepare), survivesCrash: true }
  if (isPglite(handle)) return { driver: pgliteDriver(handle), survivesCrash: isPersistent(handle) }
  const known = knownTool(handle)
  const why = known === undefined ? misfit(handle) : (known.unfit ?? foreign(known))
  if (why !== undefined) throw fail('OPTION_INVALID', { detail: why })
  if (known !== undefined) return { driver: toolDriver(known.tool), survivesCrash: true }
  if (isTool(handle)) return { driver: toolDriver(handle), survivesCrash: true }
  throw fail('OPTION_INVALID', { detail: taken })
}

const taken =
  'postgres() takes a Pool of node-postgres, the sql of postgres.js, a PGlite, a Drizzle, a Kysely, a PrismaClient, a Knex, a DataSource of TypeORM, or { transaction, query }'

/** What tools call PostgreSQL. */
const dialects: readonly string[] = ['PgDatabase', 'postgres', 'postgresql']

function foreign({ name, dialect }: KnownTool): string | undefined {
  if (dialect === undefined || dialects.includes(dialect)) return undefined
  return `this ${name} is for another database: ${dialect}`
}
