/** Which driver a handle gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import type { Driver } from './driver.js'
import { isPool, nodePostgres, type PgPool, type PgTx } from './node-postgres.js'
import { isPersistent, isPglite, type Pglite, type PgliteTx, pgliteDriver } from './pglite.js'
import { isPostgresJs, type PostgresJs, type PostgresJsTx, postgresJs } from './postgres-js.js'
import { isTool, type PostgresTool, toolDriver } from './tool.js'

/** A client that {@link postgres} knows by its shape. */
export type PostgresHandle = PgPool | PostgresJs | Pglite

/** What the work writes through, by the handle. */
export type PostgresTx<Handle> = Handle extends PostgresJs
  ? PostgresJsTx<Handle>
  : Handle extends PgPool
    ? PgTx<Handle>
    : Handle extends Pglite
      ? PgliteTx<Handle>
      : never

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
  if (isTool(handle)) return { driver: toolDriver(handle), survivesCrash: true }
  throw fail('OPTION_INVALID', {
    detail:
      'postgres() takes a Pool of node-postgres, the sql of postgres.js, a PGlite, or { transaction, query }',
  })
}
