/** Servers that die, connections that are cut, pools that are full, a standby that was taken for the primary. */
import { writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PostgresServer } from '../../servers/postgres.js'
import { temporaryPostgres } from '../../servers/temporary.js'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  freshKey,
  openBench,
  until,
  wish,
} from './harness.js'

let bench: Bench
const uncaught: unknown[] = []
const remember = (error: unknown) => uncaught.push(error)

beforeAll(async () => {
  process.on('uncaughtException', remember)
  bench = await openBench({}, { max: 4 })
})

afterAll(async () => {
  process.off('uncaughtException', remember)
  await bench.close()
  expect(uncaught).toEqual([])
})

/** Ends the backend of an open transaction. */
async function terminate(open: { tx: { query: pg.Pool['query'] } }): Promise<void> {
  const { rows } = await open.tx.query('select pg_backend_pid() as pid')
  await bench.sql('select pg_terminate_backend($1)', [rows[0].pid])
}

/** No client is checked out, waited for, or kept although it is dead. */
function expectWhole(pool: pg.Pool): void {
  expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0])
}

test('a backend that dies while the work runs is told, and nothing is stored', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  const lost = new Promise((resolve) => open.onLost(resolve))
  await addEffect(open, key)
  await terminate(open)
  await lost
  expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  await open.rollback()
  expectWhole(bench.pool)
  expect(await bench.effects(key)).toBe(0)
  expect(await attempt(bench.store, key)).toBe('committed')
})

test('an idle owner is rolled back by the server, and its key is free', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key, { timeoutMs: 50 }))
  await addEffect(open, key)
  await new Promise((resolve) => open.onLost(resolve))
  expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  expect(await bench.effects(key)).toBe(0)
  expect(await attempt(bench.store, key)).toBe('committed')
  expectWhole(bench.pool)
})

test('the idle timeout ends with the transaction', async () => {
  const { store, pool } = bench.another({}, { max: 1 })
  const open = await store.transactions.begin(beginRequest(freshKey(), { timeoutMs: 12_345 }))
  const inside = await open.tx.query('show idle_in_transaction_session_timeout')
  expect(inside.rows[0].idle_in_transaction_session_timeout).toBe('12345ms')
  await open.save(wish)
  const after = await pool.query('show idle_in_transaction_session_timeout')
  expect(after.rows[0].idle_in_transaction_session_timeout).toBe('0')
})

test('stale connections in the pool do not surface', async () => {
  const { store, pool } = bench.another({}, { max: 4 })
  const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()))
  const answers = await Promise.all(clients.map((client) => client.query('select pg_backend_pid() as pid')))
  const pids = answers.map(({ rows }) => rows[0].pid)
  for (const client of clients) client.release()
  const gone = async () => {
    // In one statement, so that this process hears of it as late as it can: with the answer.
    const { rows } = await bench.sql(
      'select bool_or(pg_terminate_backend(pid)) as some from pg_stat_activity where pid = any($1)',
      [pids],
    )
    return rows[0].some === null
  }
  await until(gone)
  expect(await attempt(store, freshKey())).toBe('committed')
  expectWhole(pool)
})

test('a server that says goodbye in the packet that completes the connection is listened to', async () => {
  const { pool } = bench.another({}, { max: 1 })
  let farewells = 1
  const store = postgres({
    query: pool.query.bind(pool),
    on: pool.on.bind(pool),
    totalCount: 0,
    connect: (callback: (error: Error | undefined, client: pg.PoolClient | undefined) => void) =>
      pool.connect((error, client) => {
        callback(error, client)
        if (farewells-- > 0) client?.emit('error', new Error('terminating connection'))
      }),
  })
  expect(await attempt(store, freshKey())).toBe('rolledBack')
  expect(await attempt(store, freshKey())).toBe('committed')
  expectWhole(pool)
})

test('abandoning does not wait for the statement that runs', async () => {
  const key = freshKey()
  const { store, pool } = bench.another({}, { max: 1 })
  const open = await store.transactions.begin(beginRequest(key))
  const endless = open.tx.query('select pg_sleep(3600)')
  const cut = expect(endless).rejects.toThrow()
  await open.rollback('abandon')
  await cut
  await pool.query('select 1')
  expectWhole(pool)
  await bench.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(3600)%' and pid <> pg_backend_pid()`,
  )
})

test('more attempts than connections wait for the pool and all end', async () => {
  const { store, pool } = bench.another({}, { max: 2 })
  const answers = await Promise.all(Array.from({ length: 40 }, () => attempt(store, freshKey())))
  expect(new Set(answers)).toEqual(new Set(['committed']))
  expectWhole(pool)
})

test('a query timeout of the client destroys it and restores the pool', async () => {
  const { store, pool } = bench.another({}, { max: 1, query_timeout: 100 })
  const key = freshKey()
  const rival = new pg.Client({ connectionString: bench.database.connectionString })
  await rival.connect()
  await rival.query('begin')
  await rival.query('lock table retrysafe.intent in access exclusive mode')
  await expect(store.transactions.begin(beginRequest(key))).rejects.toThrow('timeout')
  await rival.query('rollback')
  await rival.end()
  expect(await attempt(store, key)).toBe('committed')
  expectWhole(pool)
})

/** A proxy that, once told to, forwards what the client sends and keeps back what the server answers. */
async function openProxy(target: URL): Promise<{ port: number; swallow(): void; close(): void }> {
  let deaf = false
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
    near.on('data', (data) => far.write(data))
    near.on('close', () => far.destroy())
    far.on('data', (data) => {
      if (deaf) near.destroy()
      else near.write(data)
    })
    far.on('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    swallow: () => {
      deaf = true
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

test('a commit whose answer was lost is ambiguous, and the read-back finds it', async () => {
  const key = freshKey()
  const url = new URL(bench.database.connectionString)
  const proxy = await openProxy(new URL(url))
  url.port = String(proxy.port)
  const pool = new pg.Pool({ connectionString: url.href })
  const store = postgres(pool)
  const request = beginRequest(key)
  const open = await store.transactions.begin(request)
  await addEffect(open, key)
  proxy.swallow()
  expect(await open.save(wish)).toMatchObject({ kind: 'ambiguous' })
  await open.rollback()
  expectWhole(pool)
  await until(async () => !(await bench.store.transactions.readBack(request.identity, Date.now())).undecided)
  const { seen } = await bench.store.transactions.readBack(request.identity, Date.now())
  expect(seen).toMatchObject({ state: 'done', owner: request.owner })
  expect(await bench.effects(key)).toBe(1)
  await pool.end()
  proxy.close()
})

test('the database goes down dead and comes back: the store goes on by itself', async () => {
  const server = await temporaryPostgres()
  const pool = new pg.Pool({ connectionString: server.connectionString, max: 4 })
  const store = postgres(pool)
  await store.migrate()
  await pool.query('create table effect (key text, note text)')
  const key = freshKey()
  const lease = claimRequest(freshKey())
  await store.claim(lease)
  const open = await store.transactions.begin(beginRequest(key))
  await addEffect(open, key)
  await Promise.all(Array.from({ length: 3 }, () => attempt(store, freshKey())))
  await server.restart('immediate')
  await open.rollback()
  expect(await attempt(store, key)).toBe('committed')
  const { rows } = await pool.query('select count(*)::int as n from effect where key = $1', [key])
  expect(rows[0].n).toBe(1)
  expect(await store.renew([{ ...lease, leaseMs: 1000 }])).toEqual([true])
  expect(await store.find(lease.identity, Date.now())).toMatchObject({ state: 'running' })
  expectWhole(pool)
  await store.close()
  await pool.end()
  await server.stop()
})

test('a standby is never taken for the primary', async () => {
  const server: PostgresServer = await temporaryPostgres()
  const first = new pg.Pool({ connectionString: server.connectionString })
  await postgres(first).migrate()
  await first.end()
  // With this file the server starts in recovery, as a standby that waits for its primary.
  await server.restart()
  writeFileSync(join(server.dataDirectory, 'standby.signal'), '')
  await server.restart()
  const pool = new pg.Pool({ connectionString: server.connectionString })
  const store = postgres(pool)
  const request = beginRequest(freshKey())
  await expect(store.transactions.begin(request)).rejects.toThrow('during recovery')
  await expect(store.transactions.readBack(request.identity, Date.now())).rejects.toThrow('during recovery')
  await expect(store.claim(claimRequest(freshKey()))).rejects.toMatchObject({ code: '25006' })
  expectWhole(pool)
  await pool.end()
  await server.stop()
})
