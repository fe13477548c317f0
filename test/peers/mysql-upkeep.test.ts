/** Migrations, sweeping, and servers that are set up otherwise (rules 14, 20 and 36). */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { RowDataPacket } from 'mysql2/promise'
import { createPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mysql } from '../../dist/stores/mysql.js'
import {
  addEffect,
  attempt,
  type Bench,
  beginRequest,
  claimRequest,
  freshKey,
  identityOf,
  openBench,
  outcome,
} from './mysql-bench.js'
import { noMariadb } from './mysql-suite.js'
import type { Ran } from './processes/mysql-migrator.js'

const migrator = new URL('../../build/test/peers/processes/mysql-migrator.js', import.meta.url)

describe.skipIf(noMariadb !== undefined)('upkeep on MariaDB', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench()
  })

  afterAll(() => bench.close())

  test('of several processes that migrate at once each succeeds, and one says that it did it', async () => {
    const children = [1, 2, 3, 4].map(() => fork(migrator, [bench.url, 'together'], { execArgv: [] }))
    const answers = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as Ran))
    await Promise.all(children.map(async (child) => child.exitCode ?? (await once(child, 'exit'))))
    expect(answers.flat()).toEqual(['0001_intent'])
    expect(await attempt(bench.another({}, { schema: 'together' }).store, freshKey())).toBe('committed')
  })

  test('the SQL of the migrations brings the same tables, and `migrate` has nothing to add', async () => {
    const { store } = bench.another({}, { schema: 'by_hand' })
    const pool = createPool({ uri: bench.url, multipleStatements: true })
    await pool.query(store.sql())
    await pool.query(store.sql())
    await pool.end()
    expect(await store.migrate()).toEqual([])
    expect(await attempt(store, freshKey())).toBe('committed')
  })

  test('an account that may create no database migrates one that is there', async () => {
    await bench.sql('create database granted')
    await bench.sql("create user narrow@'127.0.0.1' identified by 'x'")
    await bench.sql("grant select, insert, update, delete, create, index on granted.* to narrow@'127.0.0.1'")
    await bench.sql("grant insert on app.effect to narrow@'127.0.0.1'")
    const narrow = { user: 'narrow', password: 'x', uri: bench.url.replace('root@', 'narrow:x@') }
    const { store } = bench.another(narrow, { schema: 'granted' })
    expect(await store.migrate()).toEqual(['0001_intent'])
    expect(await attempt(store, freshKey())).toBe('committed')
    await expect(bench.another(narrow, { schema: 'other' }).store.migrate()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })

  test('a sweep takes index and primary key, never the whole table', async () => {
    const { store } = bench
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const request = claimRequest(freshKey())
        await store.claim(request)
        await store.complete({ ...request, outcome, retainMs: 3_600_000 })
      }),
    )
    const before = await handler()
    expect(await store.sweeping.sweep({ limit: 100, callerNowMs: Date.now() })).toBe(0)
    const after = await handler()
    expect(after - before, 'rows read by a scan').toBeLessThan(10)
  })

  async function handler(): Promise<number> {
    const rows = await bench.sql("show global status where variable_name in ('Handler_read_rnd_next')")
    return Number(rows[0]?.Value)
  }

  test('a sweeper passes by what a transaction has locked, and takes the rest', async () => {
    const { store } = bench
    const keys = [freshKey(), freshKey(), freshKey()]
    for (const key of keys) {
      const request = claimRequest(key)
      await store.claim(request)
      await store.complete({ ...request, outcome, retainMs: 1 })
    }
    const past = Date.now() + 3_600_000
    await bench.sql('update retrysafe.retrysafe_intent set ends_at = ends_at - 1000000 where `key` in (?)', [
      keys.map((key) => Buffer.from(key)),
    ])
    const open = await store.transactions.begin(beginRequest(keys[1] ?? ''))
    expect(open.granted).toBe(true)
    await store.sweeping.sweep({ limit: 100, callerNowMs: past })
    expect(
      await Promise.all(keys.map(async (key) => (await store.find(identityOf(key), past))?.state)),
    ).toEqual([undefined, 'done', undefined])
    await open.rollback()
  })

  test('wrong options are refused at once', () => {
    const pool = createPool({ uri: bench.url })
    for (const options of [
      { schema: 'a`b' },
      { schema: '' },
      { answerTimeoutMs: 0 },
      { renewalPool: {} as never },
    ])
      expect(() => mysql(pool, options), JSON.stringify(options)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
    expect(() => mysql({} as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})

describe.skipIf(noMariadb !== undefined)('a server that rolls back everything for a lock', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench(['--innodb-rollback-on-timeout=ON', '--innodb-lock-wait-timeout=1'])
  })

  afterAll(() => bench.close())

  test('a key that is held is held', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    expect(await attempt(bench.store, key)).toBe('held')
    expect((await bench.store.claim(claimRequest(key))).claimed).toBe(false)
    await open.rollback()
    expect(await attempt(bench.store, key)).toBe('committed')
  })

  test("a key that is held rolls the caller's transaction back with an error, and never in silence", async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    const user = await bench.connection()
    await user.query('start transaction')
    await addEffect({ tx: user }, `${key}-user`)
    await expect(bench.store.transactions.within(user, beginRequest(key))).rejects.toMatchObject({
      code: 'TRANSACTION_CONFLICT',
    })
    const [rows] = await user.query<RowDataPacket[]>('select @@in_transaction as t')
    expect(rows[0]?.t).toBe(0)
    user.release()
    await open.rollback()
    expect(await bench.effects(`${key}-user`)).toBe(0)
  })

  test('a lock that the work did not get, and swallowed, makes the save fail', async () => {
    const key = freshKey()
    await bench.sql('create table stock (id int primary key, n int) engine = InnoDB')
    await bench.sql('insert into stock values (1, 10)')
    const holder = await bench.connection()
    await holder.query('start transaction')
    await holder.query('select * from stock where id = 1 for update')
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    await expect(open.tx.query('update stock set n = 0')).rejects.toMatchObject({ errno: 1205 })
    await holder.query('rollback')
    holder.release()
    const answer = await open.save({ fingerprint: outcome, outcome, retainMs: 1000, undoWork: false })
    expect(answer.kind).toBe('aborted')
    expect(await bench.effects(key)).toBe(0)
    expect(await attempt(bench.store, key)).toBe('committed')
  })
})
