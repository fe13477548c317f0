import type { Knex, knex as Make } from 'knex'
import { postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

const { default: knex } = await peer<{ default: typeof Make }>('knex')

/** Idle connections are closed soon, so that a process can end. */
const pool = { min: 0, max: connections, idleTimeoutMillis: 1000 }

export function knexOnPg(connectionString: string): ToolClient {
  const db = knex({ client: 'pg', connection: connectionString, pool })
  return {
    handle: db,
    store: (options) => postgres(db, options),
    insert: async (tx, effect) => ((tx ?? db) as Knex)('effect').insert(effect),
    insertUnique: async (tx, key) => (tx as Knex.Transaction)('unique_effect').insert({ key }),
    violation: 'DatabaseError',
    build: (tx, effect) => {
      const query = (tx as Knex.Transaction)('effect').insert(effect)
      return () => query
    },
    nested: async (tx, work) => (tx as Knex.Transaction).transaction(work),
    transaction: (work) => db.transaction(work),
    end: () => db.destroy(),
  }
}
