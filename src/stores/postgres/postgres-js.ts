/**
 * The driver for postgres.js (`postgres` 3.4), over the `sql` that the user brings.
 *
 * A transaction begins on a connection of our own, so that BEGIN, lock and look-up go in one message; a single statement goes
 * through the pool like any other. Values come back as bytes, so that `types` and `transform` of the user make no difference.
 */
import { fail } from '../../errors.js'
import type { Driver } from './driver.js'
import { bookkeeping } from './postgres-js/flight.js'
import { adopted, ownSession } from './postgres-js/session.js'
import type { Maker, PostgresJs, PostgresJsTx } from './postgres-js/types.js'

export type { PostgresJs, PostgresJsTx } from './postgres-js/types.js'

/** Tells a client of postgres.js by its members: a transaction's `sql` is a function too, but only the client begins. */
export function isPostgresJs(handle: unknown): handle is PostgresJs {
  if (typeof handle !== 'function') return false
  return ['unsafe', 'begin', 'reserve', 'options'].every((name) => name in handle)
}

export function postgresJs<Sql extends PostgresJs>(sql: Sql, prepare: boolean): Driver<PostgresJsTx<Sql>> {
  // It would be called with our rows as well, and nobody can say what it makes of them.
  if (typeof sql.options.transform.row.from === 'function')
    throw fail('OPTION_INVALID', {
      detail:
        'transform.row of postgres.js is applied to the rows of the store too; use transform.column and transform.value, or a client without it',
    })
  const client = { maker: sql as unknown as Maker, close: sql.CLOSE }
  const bookOf = prepare && sql.options.prepare !== false ? bookkeeping() : undefined
  return {
    beginsAnew: true,
    tellsEnd: true,
    acquire: async () => ownSession(client, bookOf),
    adopt: (tx) => adopted(client, tx),
  }
}
