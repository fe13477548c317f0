/** How transactions end: what the server rolled back or committed behind our back is never taken for saved (rules 3, 21 and 36). */
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
  wish,
} from './mysql-bench.js'
import { noMariadb } from './mysql-suite.js'

describe.skipIf(noMariadb !== undefined)('endings on MariaDB', () => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench(['--innodb-lock-wait-timeout=1'])
    await bench.sql('create table stock (id int primary key, n int) engine = InnoDB')
    await bench.sql('insert into stock values (1, 10), (2, 10)')
    await bench.sql('create procedure settle() begin commit; end')
    await bench.sql('create procedure take_back() begin rollback; end')
    await bench.sql('create procedure alter_it() begin create table if not exists made (id int); end')
  })

  afterAll(() => bench.close())

  const control = [
    'begin',
    'START TRANSACTION',
    '/* c */ commit',
    'rollback',
    '-- c\nrollback and chain',
    '/*!50000 commit */',
    'set autocommit = 1',
    'set session transaction isolation level serializable',
    'xa start "x"',
    'lock tables effect write',
    'create table t (id int)',
    'alter table effect add x int',
    'drop table effect',
    'truncate effect',
    'rename table effect to e',
    'select 1; commit',
  ]

  test.each(control)('`tx` refuses %s at its line, and nothing is sent', async (text) => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    for (const statement of [text, { sql: text }])
      await expect(open.tx.query(statement as string)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    await expect(open.tx.execute(text)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(1)
  })

  test.each([
    'savepoint mine',
    "select 'commit; drop table effect'",
    'create temporary table scratch (id int)',
    'select `begin` from (select 1 as `begin`) x',
    'select 1 -- ; commit',
    'set @total = 1',
  ])('`tx` lets pass what ends nothing: %s', async (text) => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    await open.tx.query(text)
    await addEffect(open, key)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(1)
  })

  test('DDL that hides from `tx` makes the save fail, and the record says that nobody can tell', async () => {
    const key = freshKey()
    const safe = retrysafe({ store: bench.store })
    const work = async ({ tx }: { tx: Parameters<typeof addEffect>[0]['tx'] }) => {
      await addEffect({ tx }, key)
      await tx.query('call alter_it()')
      return 'done'
    }
    await expect(safe.transaction({ scope: 'tenant', key }, work)).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
    })
    expect(await bench.effects(key), 'the DDL has committed it').toBe(1)
    expect((await bench.store.find(identityOf(key), Date.now()))?.state).toBe('unknown')
    await expect(safe.transaction({ scope: 'tenant', key }, work)).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    })
    expect(await bench.effects(key), 'no second run').toBe(1)
    await safe.close()
  })

  test('a COMMIT that hides in a procedure makes the save fail and stores no outcome', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    await open.tx.query('call settle()')
    await addEffect(open, key)
    expect((await open.save(wish)).kind).toBe('aborted')
    expect(await bench.effects(key), 'nothing behind the COMMIT').toBe(1)
    expect((await bench.store.find(identityOf(key), Date.now()))?.state).toBe('unknown')
  })

  test('a ROLLBACK that hides in a procedure makes the save fail, and the key is free', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    await open.tx.query('call take_back()')
    await addEffect(open, key)
    expect((await open.save(wish)).kind).toBe('aborted')
    expect(await bench.effects(key)).toBe(0)
    expect(await attempt(bench.store, key)).toBe('committed')
  })

  test.each([false, true])(
    'a deadlock that the work swallows makes the save fail, and what was sent beside and behind it is undone (undoing the work: %s)',
    async (undoWork) => {
      const key = freshKey()
      const { store } = bench
      const open = await store.transactions.begin(beginRequest(key))
      await addEffect(open, key)
      await open.tx.query('update stock set n = n - 1 where id = 1')
      const rival = await bench.connection()
      await rival.query('start transaction')
      // More rows written than ours, so that ours is the victim.
      for (let row = 0; row < 20; row += 1)
        await rival.query("insert into effect (`key`, note) values ('rival', '')")
      await rival.query('update stock set n = n - 1 where id = 2')
      const waiting = open.tx.query('update stock set n = n - 1 where id = 2').then(
        () => 0,
        (error: { errno: number }) => error.errno,
      )
      const beside = addEffect(open, key, 'beside')
      await rival.query('update stock set n = n - 1 where id = 1')
      expect(await waiting).toBe(1213)
      await rival.query('rollback')
      rival.release()
      await beside
      await addEffect(open, key, 'behind')
      expect((await open.save({ ...wish, undoWork })).kind).toBe('aborted')
      expect(await bench.effects(key)).toBe(0)
      expect(await store.find(identityOf(key), Date.now())).toBeUndefined()
    },
  )

  test('a deadlock of the work is told as a conflict, and the key is free', async () => {
    const key = freshKey()
    const safe = retrysafe({ store: bench.store })
    const deadlock = Object.assign(new Error('Deadlock found'), {
      errno: 1213,
      sqlState: '40001',
      code: 'ER_LOCK_DEADLOCK',
    })
    const failed = safe.transaction({ scope: 'tenant', key }, async () => Promise.reject(deadlock))
    await expect(failed).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(await attempt(bench.store, key)).toBe('committed')
    await safe.close()
  })

  test('a lock that the work did not get undoes that statement alone, and what it swallowed commits without it', async () => {
    const key = freshKey()
    const holder = await bench.connection()
    await holder.query('start transaction')
    await holder.query('select * from stock where id = 1 for update')
    const open = await bench.store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    await expect(open.tx.query('update stock set n = 0 where id = 1')).rejects.toMatchObject({ errno: 1205 })
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    await holder.query('rollback')
    holder.release()
    expect(await bench.effects(key)).toBe(1)
    expect(await bench.sql('select n from stock where id = 1')).toEqual([{ n: 10 }])
  })

  test('an outcome of 200 KB comes back whole, also without strict mode', async () => {
    const { pool, store } = bench.another({ connectionLimit: 1 })
    await pool.query("set sql_mode = ''")
    const key = freshKey()
    const large = Buffer.from('ein ä, ein 🔑. '.repeat(12_000))
    expect(large.length).toBeGreaterThan(200_000)
    const open = await store.transactions.begin(beginRequest(key))
    expect(await open.save({ ...wish, outcome: large })).toEqual({ kind: 'committed' })
    const found = await store.find(identityOf(key), Date.now())
    expect(Buffer.from(found?.outcome ?? []).equals(large)).toBe(true)
  })

  test('an outcome beyond the largest packet is a clear error, costs no connection, and frees the key', async () => {
    const key = freshKey()
    const { store } = bench.another({ connectionLimit: 1 })
    const open = await store.transactions.begin(beginRequest(key))
    await addEffect(open, key)
    const answer = await open.save({ ...wish, outcome: Buffer.alloc(9 * 1024 * 1024) })
    expect(answer).toMatchObject({ kind: 'rolledBack', error: { code: 'STORE_UNAVAILABLE' } })
    expect(String((answer as { error: Error }).error.message)).toContain('max_allowed_packet')
    expect(await bench.effects(key)).toBe(0)
    expect(await attempt(store, key)).toBe('committed')
  })

  test('errors of ours carry no statement, and so no key and no outcome', async () => {
    const { store } = bench.another({}, { schema: 'nowhere' })
    const key = freshKey()
    const hex = Buffer.from(key).toString('hex')
    for (const call of [
      () => store.claim(claimRequest(key)),
      () => store.transactions.begin(beginRequest(key)),
      () => store.find(identityOf(key), Date.now()),
    ]) {
      const error = await call().catch((thrown: Error) => thrown)
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(String((error as Error).message)).toContain('store.migrate()')
      expect(
        JSON.stringify(error, Object.getOwnPropertyNames(error)) + String((error as Error).cause),
      ).not.toContain(hex)
      expect((error as { cause: { sql?: string } }).cause.sql).toBeUndefined()
    }
  })

  test('`tx` dies with the attempt, and the save waits for what it has sent', async () => {
    const key = freshKey()
    const open = await bench.store.transactions.begin(beginRequest(key))
    const slow = open.tx.query('select sleep(0.2)')
    const late = addEffect(open, key)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    await slow
    await late
    expect(await bench.effects(key)).toBe(1)
    await expect(addEffect(open, key)).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
  })

  test('a lease that was lost stops the COMMIT of its last writes', async () => {
    const { store } = bench
    const key = freshKey()
    const request = claimRequest(key, { leaseMs: 1 })
    await store.claim(request)
    const open = await store.transactions.open(request, 10_000)
    await addEffect(open, key)
    const seen = await store.find(identityOf(key), Date.now())
    if (seen === undefined) throw new Error('no record')
    expect(await store.takeOver({ ...claimRequest(key), seen })).toBeDefined()
    expect(await open.save(wish)).toEqual({ kind: 'refused' })
    expect(await bench.effects(key)).toBe(0)
  })
})
