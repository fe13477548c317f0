import type { Knex, knex as Make } from 'knex'
import { mysql } from '../../../processes/own-mysql.js'
import { peer } from '../peer.js'
import { connections, type MysqlToolClient } from './client.js'

const { default: knex } = await peer<{ default: typeof Make }>('knex')

/** Idle connections are closed soon, so that a process can end. */
const pool = { min: 0, max: connections, idleTimeoutMillis: 1000 }

export function knexOnMysql2(url: string): MysqlToolClient {
  const db = knex({ client: 'mysql2', connection: url, pool })
  return {
    store: (options) => mysql(db, options),
    insert: async (tx, effect) => ((tx ?? db) as Knex)('effect').insert(effect),
    insertUnique: async (tx, key) => (tx as Knex)('unique_effect').insert({ key }),
    run: async (tx, text) => (tx as Knex).raw(text),
    violation: 'Error',
    nested: async (tx, work) => (tx as Knex).transaction(work),
    transaction: (work) => db.transaction(work),
    end: () => db.destroy(),
  }
}
