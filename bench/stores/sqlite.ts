/** SQLite over both drivers and in both kinds: one connection for everything, or one for each transaction. A fresh file each time, whose commits are synced. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { retrysafe } from 'retrysafe'
import { type BetterSqlite3, type NodeSqlite, sqlite } from 'retrysafe/sqlite'
import { peer } from '../../servers/peers.js'
import { order, replyOf, scope } from '../work.js'
import {
  type ClientBench,
  leaseWay,
  type Server,
  type StoreBench,
  type Subject,
  transactionWay,
} from './store.js'

interface Preparing {
  prepare(text: string): {
    run(...values: unknown[]): { lastInsertRowid: number | bigint }
    get(...values: unknown[]): unknown
  }
}
type Db = Preparing & (BetterSqlite3 | NodeSqlite)
type Connect = (file: string) => Db

/** By name, because the types of the oldest Node do not know of it. */
const nodeModule: string = 'node:sqlite'

const setUp = `
  pragma journal_mode = wal;
  pragma synchronous = full;
  create table orders (id integer primary key, customer_id text not null, total_cents integer not null) strict;
  create table replies (key text not null, scope text not null, reply text not null, primary key (key, scope)) strict;`
const insert = 'insert into orders (customer_id, total_cents) values (?, ?)'
const select = 'select key, scope, reply from replies where key = ? and scope = ?'
const keepReply = 'insert into replies (key, scope, reply) values (?, ?, ?)'

async function betterSqlite3(): Promise<Connect> {
  const { default: Database } = await peer<{ default: new (file: string) => Preparing & BetterSqlite3 }>(
    'better-sqlite3',
  )
  return (file) => new Database(file)
}

interface NodeModule {
  readonly DatabaseSync: new (file: string) => Preparing & NodeSqlite
}

async function nodeSqlite(): Promise<Connect> {
  const { DatabaseSync } = (await import(nodeModule)) as NodeModule
  return (file) => new DatabaseSync(file)
}

async function nodeLacks(): Promise<string | undefined> {
  const connect = await nodeSqlite().catch(() => undefined)
  const db = connect?.(':memory:')
  // The first ones could not tell whether they are inside a transaction.
  const able = db !== undefined && 'isTransaction' in db
  db?.close()
  return able ? undefined : `needs Node 22.16 or later, this is ${process.versions.node}`
}

async function start(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-bench-'))
  return {
    at: folder,
    // Of a version that each driver brings with it.
    what: 'SQLite',
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

function clientsOf(
  driver: string,
  load: () => Promise<Connect>,
  needs: Pick<ClientBench, 'peers' | 'lacking'>,
): ClientBench[] {
  const kind = (id: string, shared: boolean): ClientBench => ({
    id,
    ...needs,
    open: async (at) => over(await load(), join(at, `${randomUUID()}.db`), shared),
  })
  return [kind(`${driver}-opened`, false), kind(`${driver}-shared`, true)]
}

async function over(connect: Connect, file: string, shared: boolean): Promise<Subject> {
  const db = connect(file)
  db.exec(setUp)
  const store = shared ? sqlite(db) : sqlite({ open: () => connect(file) })
  await store.migrate()
  const safe = retrysafe({ store })
  return {
    transaction: transactionWay(safe, async () => placeBare(db), placeOrder),
    lease: leaseWay(safe, async () => placeOrder(db)),
    read: async (key) => db.prepare(select).get(key, scope),
    keep: async (keys) => {
      const reply = JSON.stringify(replyOf('123456'))
      for (const key of keys) db.prepare(keepReply).run(key, scope, reply)
    },
    close: async () => {
      await safe.close()
      await store.close()
      db.close()
    },
  }
}

/** Prepared each time, bare and safe: a transaction on a connection of its own has no statement to keep. */
function placeOrder(db: Preparing) {
  const { lastInsertRowid } = db.prepare(insert).run(order.customerId, order.totalCents)
  return replyOf(String(lastInsertRowid))
}

function placeBare(db: Preparing) {
  db.prepare('begin immediate').run()
  const reply = placeOrder(db)
  db.prepare('commit').run()
  return reply
}

export const sqliteBench: StoreBench = {
  id: 'sqlite',
  clients: [
    ...clientsOf('better-sqlite3', betterSqlite3, { peers: ['better-sqlite3'] }),
    ...clientsOf('node-sqlite', nodeSqlite, { peers: [], lacking: nodeLacks }),
  ],
  start,
}
