/** What is left when the server, the client's process or one answer is lost (rules 2, 10, 17 and 21). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createPool as createMariadbPool } from 'mariadb'
import { createPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { retrysafe } from '../../dist/index.js'
import { type MysqlOptions, mysql } from '../../dist/stores/mysql.js'
import { until } from '../setup/until.js'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  freshKey,
  identityOf,
  openBench,
  type Tx,
  wish,
} from './mysql-bench.js'
import { type MysqlProxy, mysqlProxy } from './mysql-proxy.js'
import { noMariadb } from './mysql-suite.js'
import type { OwnerMode } from './processes/mysql-owner.js'
import { mariadbPool } from './processes/mysql-store.js'

const owner = new URL('../../build/test/peers/processes/mysql-owner.js', import.meta.url).pathname

describe.skipIf(noMariadb !== undefined)('losses on MariaDB', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench()
  })

  afterAll(() => bench.close())

  test('a server that is killed in the middle of the work leaves nothing of it, and the pool serves again', async () => {
    const { store } = bench
    const [key, done] = [freshKey(), freshKey()]
    expect(await attempt(store, done)).toBe('committed')
    // Connections that will be stale afterwards.
    await Promise.all([1, 2, 3, 4].map(() => attempt(store, freshKey())))
    const open = await store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    let lost: unknown
    open.onLost((cause) => {
      lost = cause
    })
    await bench.server.kill()
    await until(() => lost !== undefined, 'the loss')
    expect((await open.save(wish)).kind).toBe('rolledBack')
    await expect(attempt(store, key)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await bench.server.start()
    expect(await attempt(store, key)).toBe('committed')
    expect(await attempt(store, done)).toBe('replayed')
    expect(await bench.effects(key)).toBe(1)
  })

  test('connections that went stale while the server was restarted do not surface', async () => {
    const { store } = bench.another({ connectionLimit: 4 })
    const held = await Promise.all([1, 2, 3, 4].map(() => store.transactions.begin(beginRequest(freshKey()))))
    await Promise.all(held.map((open) => open.rollback()))
    await bench.server.kill()
    await bench.server.start()
    const ends = await Promise.all(Array.from({ length: 8 }, () => attempt(store, freshKey())))
    expect(new Set(ends)).toEqual(new Set(['committed']))
  })

  test('the connector of MariaDB outlives a server that is killed, as the process does', async () => {
    const { hostname, port } = new URL(bench.url)
    const pool = createMariadbPool({
      host: hostname,
      port: Number(port),
      user: 'root',
      database: 'app',
      connectionLimit: 3,
      acquireTimeout: 1000,
    })
    const store = mysql(pool)
    const [key, done] = [freshKey(), freshKey()]
    const attemptOver = async (one: string) => {
      const open = await store.transactions.begin(beginRequest(one))
      if (!open.granted || open.seen?.live) {
        await open.rollback()
        return open.seen?.state ?? 'held'
      }
      await open.tx.query('insert into effect (`key`) values (?)', [one])
      return (await open.save(wish)).kind
    }
    expect(await attemptOver(done)).toBe('committed')
    const open = await store.transactions.begin(beginRequest(key))
    await open.tx.query('insert into effect (`key`) values (?)', [key])
    let lost = false
    open.onLost(() => {
      lost = true
    })
    await bench.server.kill()
    await until(() => lost, 'the loss')
    expect((await open.save(wish)).kind).toBe('rolledBack')
    await expect(attemptOver(key)).rejects.toThrow()
    await bench.server.start()
    await until(async () => (await attemptOver(key).catch(() => '')) !== '', 'the pool to connect again')
    expect(await attemptOver(key)).toBe('done')
    expect(await attemptOver(done)).toBe('done')
    expect(await bench.effects(key)).toBe(1)
    await pool.end()
  })

  test.each<OwnerMode>(['transaction', 'lease'])(
    'a process that is killed in the middle of its work in %s mode leaves no effect, and the next attempt runs',
    async (mode) => {
      const key = freshKey()
      const child = spawn(process.execPath, [owner, bench.url, key, mode], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      await once(child.stdout, 'data')
      expect(await bench.effects(key)).toBe(0)
      const held = await bench.store.transactions.begin(beginRequest(key))
      await held.rollback()
      expect(held.granted && held.seen === undefined).toBe(false)
      child.kill('SIGKILL')
      await once(child, 'exit')
      let ended = 'held'
      await until(async () => {
        ended = await attempt(bench.store, key)
        return ended !== 'held'
      }, 'the next attempt')
      expect(ended).toBe('committed')
      expect(await bench.effects(key)).toBe(1)
    },
  )

  test('an owner that sends nothing for its time is rolled back by the server, and its connection closed', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key, { timeoutMs: 100 }))
    await addEffect(open, key)
    let lost = false
    open.onLost(() => {
      lost = true
    })
    await until(() => lost, 'the end of its connection')
    expect((await open.save(wish)).kind).toBe('rolledBack')
    expect(await attempt(bench.store, key)).toBe('committed')
    expect(await bench.effects(key)).toBe(1)
  })

  test('a server that stops answering is given up after its time', async () => {
    const { store } = bench.another({ connectionLimit: 1 }, { answerTimeoutMs: 300 })
    const key = freshKey()
    const connection = await bench.connection()
    await connection.query('lock tables retrysafe.retrysafe_intent write, effect write')
    await expect(store.find(identityOf(key), Date.now())).rejects.toThrow(/did not answer within 300 ms/)
    await connection.query('unlock tables')
    connection.release()
    expect(await attempt(store, key)).toBe('committed')
  })

  describe('answers that are lost', () => {
    let proxy: MysqlProxy

    beforeAll(async () => {
      proxy = await mysqlProxy(Number(new URL(bench.url).port))
    })

    afterAll(() => proxy.close())

    function behind(options: MysqlOptions = {}) {
      const url = new URL(bench.url)
      url.port = String(proxy.port)
      const pool = createPool({ uri: url.href })
      const safe = retrysafe({ store: mysql(pool, options), workTimeoutMs: 2000 })
      const end = async () => {
        await safe.close()
        await pool.end()
      }
      return { safe, end }
    }

    const write = async (tx: Tx, key: string) => {
      await addEffect({ tx }, key)
      return 'done'
    }

    test.each(['transaction', 'lease'])(
      'a COMMIT whose answer is lost in %s mode is read back, and answered as what it was',
      async (mode) => {
        const { safe, end } = behind()
        const intent = { scope: 'tenant', key: freshKey() }
        proxy.cut('commit', 'after')
        const before = proxy.cuts()
        const answer =
          mode === 'transaction'
            ? await safe.transaction(intent, ({ tx }) => write(tx, intent.key))
            : await safe.run(intent, ({ commit }) => commit((tx) => write(tx, intent.key)))
        expect(proxy.cuts()).toBe(before + 1)
        expect(answer).toEqual({ value: 'done', replayed: false })
        expect(await bench.effects(intent.key)).toBe(1)
        await end()
      },
    )

    test('a save that gets no answer is no success, and is told as a database that is down', async () => {
      const { safe, end } = behind({ answerTimeoutMs: 300 })
      const intent = { scope: 'tenant', key: freshKey() }
      proxy.silence('release savepoint')
      const lost = safe.transaction(intent, ({ tx }) => write(tx, intent.key))
      await expect(lost).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(await bench.effects(intent.key)).toBe(0)
      await end()
    })

    test('work whose statement gets no answer ends when its time is over', async () => {
      const { safe, end } = behind()
      const intent = { scope: 'tenant', key: freshKey() }
      proxy.silence('insert into effect')
      await expect(safe.transaction(intent, ({ tx }) => write(tx, intent.key))).rejects.toMatchObject({
        code: 'WORK_TIMEOUT',
      })
      expect(await bench.effects(intent.key)).toBe(0)
      await end()
    })

    test('a connection whose settings nobody puts back leaves the pool', async () => {
      const pool = mariadbPool(bench.url.replace(/:\d+\//, `:${proxy.port}/`), [], { connectionLimit: 1 })
      const safe = retrysafe({ store: mysql(pool, { answerTimeoutMs: 300 }) })
      const call = (key: string) => safe.transaction({ scope: 'tenant', key }, () => 'done')
      proxy.silence('set session wait_timeout = @retrysafe_wait_timeout')
      expect(await call(freshKey())).toEqual({ value: 'done', replayed: false })
      await until(() => pool.activeConnections() === 0, 'the connection given up')
      expect(await call(freshKey())).toEqual({ value: 'done', replayed: false })
      await safe.close()
      await pool.end()
    })

    test.each(['transaction', 'lease'])(
      'a COMMIT that never arrives in %s mode is no success, and the next attempt runs',
      async (mode) => {
        const { safe, end } = behind()
        const intent = { scope: 'tenant', key: freshKey() }
        const call = () =>
          mode === 'transaction'
            ? safe.transaction(intent, ({ tx }) => write(tx, intent.key))
            : safe.run(intent, ({ commit }) => commit((tx) => write(tx, intent.key)))
        proxy.cut('commit', 'before')
        await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(await bench.effects(intent.key)).toBe(0)
        expect(await call()).toEqual({ value: 'done', replayed: false })
        expect(await bench.effects(intent.key)).toBe(1)
        await end()
      },
    )
  })

  test('renewals of mysql2 go over a connection of their own, while work holds the whole pool', async () => {
    const { pool, store } = bench.another({ connectionLimit: 2 })
    const request = claimRequest(freshKey(), { leaseMs: 5000 })
    await store.claim(request)
    // Full before the first renewal, which opens that connection.
    const all = await Promise.all([pool.getConnection(), pool.getConnection()])
    expect(await store.renew([{ ...request, leaseMs: 60_000 }])).toEqual([true])
    const found = await bench.store.find(request.identity, Date.now())
    expect(found?.leftMs).toBeGreaterThan(5000)
    for (const connection of all) connection.release()
  })
})
