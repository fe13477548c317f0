/** What a key costs on disk: the number in docs/postgres.md, measured. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock, systemRandom } from '../../dist/clock.js'
import { drawKey } from '../../dist/key.js'
import { encodeOutcome } from '../../dist/outcome.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'

let database: FreshDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await freshDatabase()
  pool = new pg.Pool({ connectionString: database.connectionString })
  await postgres(pool).migrate()
})

afterAll(async () => {
  await pool.end()
  await database.drop()
})

const keys = 20_000
/** As a store writes it: JSON of 250 bytes under one common header. */
const outcome = encodeOutcome(
  {
    kind: 'reply',
    reply: {
      status: 201,
      headers: [['content-type', 'application/json; charset=utf-8']],
      body: Buffer.from(JSON.stringify({ note: 'x'.repeat(239) })),
    },
  },
  1024,
)

test('a key with a reply of 250 bytes costs about 560 bytes, a fifth of it indexes', async () => {
  const drawn = Array.from({ length: keys }, () => drawKey(systemClock, systemRandom))
  await pool.query(
    `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
      select key, 'tenant-00042', 3, gen_random_uuid(), (extract(epoch from clock_timestamp()) * 1000000)::bigint,
        $2, clock_timestamp() + interval '1 day', $3 from unnest($1::text[]) as key`,
    [drawn, randomBytes(33), outcome],
  )
  await pool.query('vacuum analyze retrysafe.intent')
  const { rows } = await pool.query(
    `select pg_table_size('retrysafe.intent')::int as table, pg_indexes_size('retrysafe.intent')::int as indexes`,
  )
  const perKey = { table: rows[0].table / keys, indexes: rows[0].indexes / keys }
  expect(perKey.table).toBeGreaterThan(400)
  expect(perKey.table).toBeLessThan(500)
  expect(perKey.indexes).toBeGreaterThan(80)
  expect(perKey.indexes).toBeLessThan(130)
})
