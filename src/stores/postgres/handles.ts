/** Which driver a handle gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import type { Driver } from './driver.js'
import { isPool, nodePostgres, type PgPool, type PgTx } from './node-postgres.js'
import { isPostgresJs, type PostgresJs, type PostgresJsTx, postgresJs } from './postgres-js.js'

/** What {@link postgres} takes. */
export type PostgresHandle = PgPool | PostgresJs

/** What the work writes through, by the handle. */
export type PostgresTx<Handle> = Handle extends PostgresJs
  ? PostgresJsTx<Handle>
  : Handle extends PgPool
    ? PgTx<Handle>
    : never

export function driverFor<Handle extends PostgresHandle>(
  handle: Handle,
  prepare: boolean,
): Driver<PostgresTx<Handle>> {
  return driverOf(handle, prepare) as Driver<PostgresTx<Handle>>
}

function driverOf(handle: unknown, prepare: boolean): unknown {
  if (isPool(handle)) return nodePostgres(handle, prepare)
  if (isPostgresJs(handle)) return postgresJs(handle, prepare)
  throw fail('OPTION_INVALID', {
    detail: 'postgres() takes a Pool of node-postgres or the sql of postgres.js',
  })
}
