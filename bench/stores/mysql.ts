/** MariaDB over both clients that speak to it: prepared statements on both sides. */
import { retrysafe } from 'retrysafe'
import { type MariadbPool, type Mysql2PromisePool, type MysqlPool, mysql } from 'retrysafe/mysql'
import { mariadbProgram, startMariadb } from '../../servers/mariadb.js'
import { peer } from '../../servers/peers.js'
import { order, replyOf, scope } from '../work.js'
import { leaseWay, type Server, type StoreBench, type Subject, transactionWay } from './store.js'

/** What the bench itself uses of a pool and of its connections; both clients have it, and give rows in forms of their own. */
interface Executing {
  execute(sql: string, values: readonly unknown[]): Promise<unknown>
}
interface Connection extends Executing {
  query(sql: string): Promise<unknown>
  release(): unknown
}
interface Pool extends Executing {
  query(sql: string): Promise<unknown>
  getConnection(): Promise<Connection>
  end(): Promise<void>
}
interface Client<Handle> {
  createPool(options: object): Pool & Handle
}

const tables = [
  'create database bench',
  `create table bench.orders (
    id bigint auto_increment primary key, customer_id varchar(255) not null, total_cents bigint not null)`,
  // Shaped as the store's own table, so that the bare look-up reads as much.
  `create table bench.replies (
    \`key\` varbinary(1020) not null, scope varbinary(1280) not null, reply longblob not null, primary key (\`key\`, scope))`,
]
const insert = 'insert into bench.orders (customer_id, total_cents) values (?, ?)'
const select = 'select `key`, scope, reply from bench.replies where `key` = ? and scope = ?'
const keepReply = 'insert into bench.replies (`key`, scope, reply) values (?, ?, ?)'

async function start(): Promise<Server> {
  const server = await startMariadb()
  try {
    const pool = (await peer<Client<Mysql2PromisePool>>('mysql2/promise')).createPool({ uri: server.url })
    try {
      for (const table of tables) await pool.query(table)
      const [row] = rowsOf(
        await pool.query('select @@innodb_flush_log_at_trx_commit as flush, version() as v'),
      )
      // Otherwise a bare transaction has next to nothing to wait for.
      if (row?.flush !== 1)
        throw new Error('innodb_flush_log_at_trx_commit is not 1: commits are not durable')
      return { at: server.url, what: `MariaDB ${row.v}`, stop: server.stop }
    } finally {
      await pool.end()
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

function rowsOf(answer: unknown): Record<string, unknown>[] {
  return (answer as [Record<string, unknown>[]])[0]
}

async function openMysql2(at: string, connections: number): Promise<Subject> {
  const { createPool } = await peer<Client<Mysql2PromisePool>>('mysql2/promise')
  return over(createPool({ uri: at, connectionLimit: connections }))
}

async function openMariadb(at: string, connections: number): Promise<Subject> {
  const { createPool } = await peer<Client<MariadbPool>>('mariadb')
  const { hostname: host, port, username: user } = new URL(at)
  return over(createPool({ host, port: Number(port), user, connectionLimit: connections }))
}

async function over(pool: Pool & MysqlPool): Promise<Subject> {
  const store = mysql<Pool & MysqlPool>(pool)
  await store.migrate()
  const safe = retrysafe({ store })
  return {
    transaction: transactionWay(safe, () => placeBare(pool), placeOrder),
    lease: leaseWay(safe, () => placeOrder(pool)),
    read: (key) => pool.execute(select, [key, scope]),
    keep: async (keys) => {
      for (const key of keys) await pool.execute(keepReply, [key, scope, JSON.stringify(replyOf('123456'))])
    },
    close: async () => {
      await safe.close()
      await store.close()
      await pool.end()
    },
  }
}

async function placeOrder(tx: Executing) {
  const answer = await tx.execute(insert, [order.customerId, order.totalCents])
  // mysql2 gives the result and its columns, the connector of MariaDB the result alone.
  const { insertId } = (Array.isArray(answer) ? answer[0] : answer) as { insertId: number | bigint }
  return replyOf(String(insertId))
}

/** An order without idempotency: three round trips. */
async function placeBare(pool: Pool) {
  const connection = await pool.getConnection()
  try {
    await connection.query('start transaction')
    const reply = await placeOrder(connection)
    await connection.query('commit')
    return reply
  } finally {
    await connection.release()
  }
}

export const mysqlBench: StoreBench = {
  id: 'mysql',
  program: { path: mariadbProgram, debian: 'mariadb-server' },
  clients: [
    { id: 'mysql2', peers: ['mysql2'], open: openMysql2 },
    // The tables are made over mysql2.
    { id: 'mariadb', peers: ['mysql2', 'mariadb'], open: openMariadb },
  ],
  start,
}
