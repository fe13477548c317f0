/** Claims among rivals: nobody waits, nobody is a victim, and an old snapshot hides nothing (rules 6, 7, 14 and 36). */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { retrysafe } from '../../dist/index.js'
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
  wish,
} from './mysql-bench.js'
import { noMariadb } from './mysql-suite.js'

describe.skipIf(noMariadb !== undefined)('claims on MariaDB', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench()
  })

  afterAll(() => bench.close())

  test('of three sessions that insert one key, one of the others gets it when the first rolls back', async () => {
    const { store } = bench
    for (let round = 0; round < 20; round += 1) {
      const key = freshKey()
      const first = await store.transactions.begin(beginRequest(key))
      await addEffect(first, key)
      const others = ['second', 'third'].map(async () => {
        for (;;) {
          const ended = await attempt(store, key)
          if (ended !== 'held') return ended
        }
      })
      await first.rollback()
      expect((await Promise.all(others)).sort()).toEqual(['committed', 'replayed'])
      expect(await bench.effects(key)).toBe(1)
    }
  })

  test('sixty rivals for a dozen neighbouring keys meet no deadlock, in both modes', async () => {
    const { store } = bench.another({ connectionLimit: 30 })
    const safe = retrysafe({ store, whileRunning: { waitMs: 20_000 } })
    const time = Date.now()
    const keys = Array.from({ length: 12 }, (_, index) => `${time}-${index}-${randomUUID()}`)
    const answers = keys.flatMap((key) =>
      Array.from({ length: 5 }, (_, index) =>
        index % 2 === 0
          ? safe.transaction({ scope: 's', key }, async ({ tx }) => {
              await addEffect({ tx }, key)
              return key
            })
          : safe.run({ scope: 's', key }, ({ commit }) =>
              commit(async (tx) => {
                await addEffect({ tx }, key)
                return key
              }),
            ),
      ),
    )
    const ended = await Promise.allSettled(answers)
    expect(ended.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(await Promise.all(keys.map((key) => bench.effects(key)))).toEqual(keys.map(() => 1))
    await safe.close()
  })

  test.each(['begin', 'within', 'claim', 'takeOver', 'readBack'])(
    '%s does not wait for the row of a transaction that is open',
    async (way) => {
      const { store } = bench
      const key = freshKey()
      const late = await store.claim(claimRequest(key, { leaseMs: 1 }))
      const holder = way === 'takeOver' ? await holding(key) : undefined
      if (holder === undefined)
        await bench.sql('delete from retrysafe.retrysafe_intent where `key` = ?', [Buffer.from(key)])
      const open = holder === undefined ? await store.transactions.begin(beginRequest(key)) : undefined
      const lockWaits = async () =>
        Number((await bench.sql("show global status like 'Innodb_row_lock_waits'"))[0]?.Value)
      const before = await lockWaits()
      expect(await asked(way, key, late)).toBe('held')
      expect(await lockWaits()).toBe(before)
      await open?.rollback()
      await holder?.()
    },
  )

  /** Locks the record from outside, as a commit that hangs would. */
  async function holding(key: string): Promise<() => Promise<void>> {
    const connection = await bench.connection()
    await connection.query('start transaction')
    await connection.query('select 1 from retrysafe.retrysafe_intent where `key` = ? for update', [
      Buffer.from(key),
    ])
    return async () => {
      await connection.query('rollback')
      connection.release()
    }
  }

  async function asked(way: string, key: string, late: object): Promise<string> {
    const { store } = bench
    if (way === 'claim') return (await store.claim(claimRequest(key))).claimed ? 'granted' : 'held'
    if (way === 'readBack')
      return (await store.transactions.readBack(identityOf(key), Date.now())).undecided ? 'held' : 'decided'
    if (way === 'takeOver') {
      const seen = await store.find(identityOf(key), Date.now())
      if (seen === undefined) throw new Error(`no record after ${JSON.stringify(late)}`)
      return (await store.takeOver({ ...claimRequest(key), seen })) === undefined ? 'held' : 'granted'
    }
    if (way === 'begin') return await attempt(store, key)
    const connection = await bench.connection()
    await connection.query('start transaction')
    const open = await store.transactions.within(connection, beginRequest(key))
    await open.rollback()
    await connection.query('rollback')
    connection.release()
    return open.granted ? 'granted' : 'held'
  }

  // The stricter kind is what MariaDB has by default from 11.6 on: it refuses what is newer, and rolls everything back.
  test.each([0, 1])(
    '`within` a transaction under REPEATABLE READ that has read before sees what a rival has committed since (strict snapshots: %s)',
    async (strict) => {
      const { store } = bench
      const key = freshKey()
      const connection = await bench.connection()
      await connection.query(`set session innodb_snapshot_isolation = ${strict}`)
      await connection.query('set transaction isolation level repeatable read')
      await connection.query('start transaction')
      await connection.query('select count(*) from retrysafe.retrysafe_intent')
      expect(await attempt(store, key)).toBe('committed')
      const [rows] = await connection.query('select 1 from retrysafe.retrysafe_intent where `key` = ?', [
        Buffer.from(key),
      ])
      expect(rows, 'the snapshot is older').toEqual([])
      const open = await store.transactions.within(connection, beginRequest(key))
      expect(open.seen).toMatchObject({ state: 'done', live: true, outcome })
      await open.rollback()
      await addEffect({ tx: connection }, `${key}-after`)
      await connection.query('commit')
      connection.release()
      expect(await bench.effects(key)).toBe(1)
      expect(await bench.effects(`${key}-after`)).toBe(1)
    },
  )

  test('two transactions under REPEATABLE READ that claim neighbouring new keys are no deadlock', async () => {
    const { store } = bench
    for (let round = 0; round < 20; round += 1) {
      const key = freshKey()
      const users = await Promise.all([bench.connection(), bench.connection()])
      for (const user of users) {
        await user.query('set transaction isolation level repeatable read')
        await user.query('start transaction')
        await user.query('select count(*) from effect')
      }
      const ends = users.map(async (user, index) => {
        const open = await store.transactions.within(user, beginRequest(`${key}-${index}`))
        await addEffect(open, key)
        const { kind } = await open.save(wish)
        await user.query('commit')
        user.release()
        return [open.granted, kind]
      })
      expect(await Promise.all(ends)).toEqual([
        [true, 'committed'],
        [true, 'committed'],
      ])
    }
  })

  test('`within` refuses a connection without an open transaction, and writes nothing', async () => {
    const key = freshKey()
    const connection = await bench.connection()
    await expect(bench.store.transactions.within(connection, beginRequest(key))).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    connection.release()
    expect(await bench.store.find(identityOf(key), Date.now())).toBeUndefined()
  })

  test('keys are equal only if their bytes are', async () => {
    const end = randomUUID()
    const keys = ['Ab', 'aB', 'ab ', 'ab', 'é', 'e\u0301'].map((text) => `${end}${text}`)
    const { store } = bench.another({ charset: 'latin1' })
    for (const key of keys) expect(await attempt(store, key)).toBe('committed')
    for (const key of keys) expect(await attempt(bench.store, key)).toBe('replayed')
    const listed = await bench.store.operating.list({ states: ['done'], limit: 6 })
    expect(listed.map(({ identity }) => identity.key).sort()).toEqual([...keys].sort())
  })

  test('what a claim leaves on a pooled connection is nothing', async () => {
    const { pool, store } = bench.another({ connectionLimit: 1 })
    const settings =
      'select @@session.wait_timeout as w, @@session.innodb_lock_wait_timeout as l, @@tx_isolation as i, @@in_transaction as t, @@autocommit as a'
    const [before] = await pool.query(settings)
    const key = freshKey()
    expect(await attempt(store, key)).toBe('committed')
    expect(await attempt(store, key)).toBe('replayed')
    expect((await store.claim(claimRequest(freshKey()))).claimed).toBe(true)
    const [after] = await pool.query(settings)
    expect(after).toEqual(before)
  })
})
