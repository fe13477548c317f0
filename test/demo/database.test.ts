import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../demo/database.js'
import { findOrder, listOrders, placeOrder } from '../../demo/orders.js'
import { migrate } from '../../demo/schema.js'
import { freshDatabase } from '../setup/database.js'

async function freshPool(): Promise<pg.Pool> {
  const { connectionString, drop } = await freshDatabase()
  const pool = new pg.Pool({ connectionString })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    await drop()
  })
  return pool
}

test('migrating twice, and from two processes at once, makes the tables once', async () => {
  const pool = await freshPool()
  await Promise.all([migrate(pool), migrate(pool), migrate(pool)])
  await migrate(pool)
  const { rows } = await pool.query('select number from demo.migrations order by number')
  expect(rows).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }])
})

test('an order is listed under its customer and found by its id', async () => {
  const pool = await freshPool()
  await migrate(pool)
  const order = await placeOrder(pool, { customerId: 'c-1', totalCents: Number.MAX_SAFE_INTEGER })
  await placeOrder(pool, { customerId: 'c-2', totalCents: 1 })
  expect(await findOrder(pool, order.orderId)).toEqual(order)
  expect(await listOrders(pool, 'c-1')).toEqual({ count: 1, orders: [order] })
  expect(await listOrders(pool)).toMatchObject({ count: 2 })
  expect(await listOrders(pool, 'nobody')).toEqual({ count: 0, orders: [] })
  expect(await findOrder(pool, "' or true --")).toBeUndefined()
})

test('DATABASE_URL is used, and printed without its user and password', async () => {
  const { connectionString, drop } = await freshDatabase()
  const lines: string[] = []
  const database = await openDatabase({ databaseUrl: connectionString, log: (line) => lines.push(line) })
  expect((await database.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  await database.close()
  await drop()
  const { host, pathname } = new URL(connectionString)
  expect(lines).toEqual([`Database: DATABASE_URL (${host}${pathname})`])
})

test('the embedded server of the demo comes back with its data when it is killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-demo-test-'))
  // Root runs the server as another account, which must be able to pass through.
  chmodSync(folder, 0o711)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const lines: string[] = []
  const options = {
    databaseUrl: '',
    dataFolder: join(folder, 'data'),
    log: (line: string) => lines.push(line),
  }
  const database = await openDatabase(options)
  try {
    await migrate(database.pool)
    await placeOrder(database.pool, { customerId: 'c-1', totalCents: 4000 })
    const { rows } = await database.pool.query(`select pg_read_file('postmaster.pid', 0, 20) as file`)
    process.kill(Number.parseInt(rows[0].file, 10), 'SIGKILL')
    await vi.waitUntil(() => lines.some((line) => line.includes('it runs again')), { timeout: 30_000 })
    expect(await listOrders(database.pool)).toMatchObject({ count: 1 })
  } finally {
    await database.close()
  }
})
