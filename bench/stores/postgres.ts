/** PostgreSQL over both of its clients, with the work, the server and the settings of the bench of that store alone. */
import { openDatabase, openSetting, tidy, versionOf } from '../database.js'
import { keepReplies, readReply } from '../scenarios.js'
import { placeBareOrder, placeOrder, placeOrderJs, scope } from '../work.js'
import { leaseWay, type Server, type StoreBench, type Subject, transactionWay } from './store.js'

async function start(): Promise<Server> {
  const database = await openDatabase()
  const what = await versionOf(database)
  return { at: database.connectionString, what, tidy: () => tidy(database), stop: database.close }
}

async function openNodePostgres(at: string, connections: number): Promise<Subject> {
  const { pool, safe, close } = await openSetting(at, connections, [])
  return {
    transaction: transactionWay(safe, () => placeBareOrder(pool), placeOrder),
    lease: leaseWay(safe, () => placeOrder(pool)),
    read: (key) => readReply(pool, key),
    keep: (keys) => keepReplies(pool, keys),
    close,
  }
}

async function openPostgresJs(at: string, connections: number): Promise<Subject> {
  const { pool, sql, safeJs, close } = await openSetting(at, connections, [])
  return {
    transaction: transactionWay(safeJs, () => sql.begin(placeOrderJs), placeOrderJs),
    lease: leaseWay(safeJs, () => placeOrderJs(sql)),
    read: (key) => sql`select key, scope, reply from bench.replies where key = ${key} and scope = ${scope}`,
    keep: (keys) => keepReplies(pool, keys),
    close,
  }
}

export const postgresBench: StoreBench = {
  id: 'postgres',
  clients: [
    { id: 'node-postgres', peers: [], open: openNodePostgres },
    { id: 'postgres-js', peers: [], open: openPostgresJs },
  ],
  start,
}
