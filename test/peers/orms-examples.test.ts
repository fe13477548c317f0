/** The examples of docs/orms.md that need a tool do what the page says. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { postgres } from '../../dist/stores/postgres.js'
import { allBlocks } from '../docs/blocks.js'
import { type Compiled, compile } from '../docs/compile.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { generatePrisma } from './processes/tools/prisma.js'

const blocks = allBlocks({ needPeers: true }).filter(({ at }) => at.startsWith('docs/orms.md'))
const names = blocks.flatMap(({ run }) => run ?? []).filter((name) => !/-(?:mysql|sqlite)-/.test(name))
let compiled: Compiled

beforeAll(async () => {
  generatePrisma()
  compiled = await compile(blocks)
})

afterAll(() => compiled?.remove())

test('there is an example for each tool, and it compiles', () => {
  expect(names).toHaveLength(7)
  expect(compiled.complaints).toBe('')
})

describe('an order is placed once, and the retry is its answer', () => {
  let database: FreshDatabase
  let pool: pg.Pool

  beforeEach(async () => {
    database = await freshDatabase()
    pool = new pg.Pool({ connectionString: database.connectionString })
    pool.on('error', () => undefined)
    await pool.query('create table orders (id serial primary key, customer_id text)')
    await postgres(pool).migrate()
    process.env.DATABASE_URL = database.connectionString
    Object.assign(globalThis, { user: { id: 'alice' } })
  })

  afterEach(async () => {
    await pool.end()
    await database.drop()
  })

  test.each(names)('%s', async (name) => {
    const { first, retry } = await compiled.run<Record<string, unknown>>(name)
    expect(first).toEqual({ value: { orderId: expect.anything() }, replayed: false })
    expect(retry).toEqual({ ...(first as object), replayed: true })
    const { rows } = await pool.query('select customer_id from orders')
    expect(rows).toEqual([{ customer_id: 'c1' }])
  })
})
