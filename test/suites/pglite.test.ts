import { PGlite, type Transaction } from '@electric-sql/pglite'
import { postgres } from 'retrysafe/postgres'
import { type Effect, storeSuite } from 'retrysafe/testing'
import { afterAll, beforeAll } from 'vitest'
import { runSuite } from './run-suite.js'

let db: PGlite

beforeAll(async () => {
  db = await PGlite.create()
  await postgres(db).migrate()
  await db.query('create table effect (key text, payload text, generation bigint)')
})

afterAll(() => db.close())

runSuite(
  storeSuite<Transaction>({
    open: async () => ({ store: postgres(db), close: () => undefined }),
    advance: async (ms) => {
      await db.query(`update retrysafe.intent set ends_at = ends_at - $1::bigint * interval '1 ms'`, [ms])
    },
    ledger: {
      write: async (tx, { key, payload, generation }) => {
        const insert = 'insert into effect (key, payload, generation) values ($1, $2, $3)'
        await (tx ?? db).query(insert, [key, payload, generation])
      },
      read: async (key) => {
        const select = 'select key, payload, generation::float8 as generation from effect where key = $1'
        return (await db.query<Effect>(select, [key])).rows
      },
    },
    lacks: {
      // test/postgres/pglite.test.ts runs transactions one after the other.
      transactions: 'its one connection can be asked nothing else while a transaction is open',
    },
    plant: async ({ key, scope }, shape) => {
      const change = shape === 'dead' ? 'state = 5' : `steps = '"charge"'`
      await db.query(`update retrysafe.intent set ${change} where key = $1 and scope = $2`, [key, scope])
    },
  }),
)
