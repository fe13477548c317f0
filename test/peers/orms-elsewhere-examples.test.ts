/** The examples of a tool on MySQL and on SQLite do what their page says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mysql } from '../../dist/stores/mysql.js'
import { type Mariadb, startMariadb } from '../../servers/mariadb.js'
import { allBlocks } from '../docs/blocks.js'
import { type Compiled, compile } from '../docs/compile.js'
import { noMariadb } from './mysql-suite.js'

const blocks = allBlocks({ needPeers: true }).filter(({ run }) =>
  /^orms-(?:mysql|sqlite)-|^mysql-tool$/.test(run ?? ''),
)
const names = blocks.flatMap(({ run }) => run ?? [])
let compiled: Compiled

beforeAll(async () => {
  compiled = await compile(blocks)
  Object.assign(globalThis, { user: { id: 'alice' } })
})

afterAll(() => compiled?.remove())

test('there is an example for each tool, and it compiles', () => {
  expect(names).toHaveLength(7)
  expect(compiled.complaints).toBe('')
})

async function placedOnce(name: string): Promise<void> {
  const { first, retry } = await compiled.run<Record<string, unknown>>(name)
  expect(first).toEqual({ value: { orderId: expect.anything() }, replayed: false })
  expect(retry).toEqual({ ...(first as object), replayed: true })
}

describe.skipIf(noMariadb !== undefined)(`on MariaDB (${noMariadb ?? 'real'})`, () => {
  let server: Mariadb

  beforeAll(async () => {
    server = await startMariadb()
  })

  afterAll(() => server.stop())

  test.each(names.filter((name) => name.includes('mysql')))('%s places one order', async (name) => {
    const database = name.replaceAll('-', '_')
    const first = createPool(server.url)
    await first.query(`create database ${database}`)
    await first.query('drop database if exists retrysafe')
    await mysql(first).migrate()
    await first.end()
    process.env.MYSQL_URL = `${server.url}/${database}`
    const pool = createPool(process.env.MYSQL_URL)
    await pool.query('create table orders (id int primary key auto_increment, customer_id varchar(40))')
    await placedOnce(name)
    const [rows] = await pool.query('select customer_id from orders')
    expect(rows).toEqual([{ customer_id: 'c1' }])
    await pool.end()
  })
})

describe('on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-orms-'))

  afterAll(() => rmSync(folder, { recursive: true }))

  test.each(names.filter((name) => name.includes('sqlite')))('%s places one order', async (name) => {
    const file = join(folder, name)
    process.env.SQLITE_FILE = file
    const db = new Database(file)
    db.exec('create table orders (id integer primary key, customer_id text)')
    await placedOnce(name)
    expect(db.prepare('select customer_id from orders').all()).toEqual([{ customer_id: 'c1' }])
    db.close()
  })
})
