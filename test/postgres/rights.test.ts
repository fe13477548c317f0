/** The rights that docs/postgres.md names are enough, and no more is asked for. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { retrysafe } from 'retrysafe'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'

const role = `worker_${randomBytes(4).toString('hex')}`
const password = randomBytes(12).toString('hex')

let database: FreshDatabase
let admin: pg.Pool
let worker: pg.Pool

beforeAll(async () => {
  database = await freshDatabase()
  admin = new pg.Pool({ connectionString: database.connectionString, max: 1 })
  await postgres(admin).migrate()
  await admin.query(`create role ${role} login password '${password}'`)
  await admin.query(`grant usage on schema retrysafe to ${role}`)
  await admin.query(`grant select, insert, update, delete on retrysafe.intent to ${role}`)
  const url = new URL(database.connectionString)
  url.username = role
  url.password = password
  worker = new pg.Pool({ connectionString: url.href })
})

afterAll(async () => {
  await worker.end()
  await admin.query(`drop owned by ${role}`)
  await admin.query(`drop role ${role}`)
  await admin.end()
  await database.drop()
})

test('USAGE on the schema and four rights on the table are enough for everything but migrating', async () => {
  const safe = retrysafe({ store: postgres(worker), mode: 'transaction', retainMs: 1000, leaseMs: 1000 })
  const inTransaction = () =>
    safe.transaction({ scope: 's', key: 't' }, ({ tx }) => tx.query('select 1').then(() => 1))
  const underLease = () => safe.run({ scope: 's', key: 'l' }, ({ commit }) => commit(() => 2))
  expect([await inTransaction(), await underLease()].map(({ replayed }) => replayed)).toEqual([false, false])
  expect([await inTransaction(), await underLease()].map(({ replayed }) => replayed)).toEqual([true, true])
  expect(await safe.list()).toHaveLength(2)
  await admin.query(`update retrysafe.intent set ends_at = now() - interval '1 hour'`)
  expect(await safe.sweep()).toBe(2)
  await expect(postgres(worker).migrate()).rejects.toMatchObject({ code: '42501' })
  await safe.close()
})
