/** postgres.js when servers die, connections are cut, and pools are full, restarted or ended. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { temporaryPostgres } from '../../servers/temporary.js'
import { openProxy } from '../setup/proxy.js'
import { type Bench, beginRequest, claimRequest, freshKey, openBench, until, wish } from './harness.js'
import { closeAllSql, expectWholePool, openSql, type SqlStore } from './postgres-js-harness.js'

let bench: Bench
const uncaught: unknown[] = []
const remember = (error: unknown) => uncaught.push(error)

beforeAll(async () => {
  process.on('uncaughtException', remember)
  bench = await openBench()
})

afterEach(closeAllSql)

afterAll(async () => {
  process.off('uncaughtException', remember)
  await bench.close()
  expect(uncaught).toEqual([])
})

async function attempt({ store }: SqlStore, key: string): Promise<string> {
  const open = await store.transactions.begin(beginRequest(key))
  await open.tx`insert into effect (key) values (${key})`
  const { kind } = await open.save(wish)
  await open.rollback()
  return kind
}

test('a backend that dies while the work runs is told, and nothing is stored', async () => {
  const over = openSql(bench, { max: 1 })
  const key = freshKey()
  const open = await over.store.transactions.begin(beginRequest(key))
  const lost = new Promise((resolve) => open.onLost(resolve))
  const [row] = await open.tx`insert into effect (key) values (${key}) returning pg_backend_pid() as pid`
  await bench.sql('select pg_terminate_backend($1)', [row?.pid])
  await lost
  await expect(open.tx`select 1`).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  await open.rollback()
  expect(await bench.effects(key)).toBe(0)
  expect(await attempt(over, key)).toBe('committed')
  await expectWholePool(over.sql)
})

test('a backend that dies under a statement fails it, and the attempt sends nothing more', async () => {
  const over = openSql(bench, { max: 1 })
  const open = await over.store.transactions.begin(beginRequest(freshKey()))
  await expect(open.tx`select pg_terminate_backend(pg_backend_pid())`).rejects.toThrow()
  expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  await open.rollback()
  await expectWholePool(over.sql)
})

test('a commit whose answer was lost is ambiguous, and the read-back finds it', async () => {
  const key = freshKey()
  const proxy = await openProxy(bench.database.connectionString)
  const over = openSql({ database: { ...bench.database, connectionString: proxy.connectionString } })
  const request = beginRequest(key)
  const open = await over.store.transactions.begin(request)
  await open.tx`insert into effect (key) values (${key})`
  proxy.swallow()
  expect(await open.save(wish)).toMatchObject({ kind: 'ambiguous' })
  await open.rollback()
  await until(async () => !(await bench.store.transactions.readBack(request.identity, Date.now())).undecided)
  const { seen } = await bench.store.transactions.readBack(request.identity, Date.now())
  expect(seen).toMatchObject({ state: 'done', owner: request.owner })
  expect(await bench.effects(key)).toBe(1)
  proxy.close()
})

test('stale connections in the pool do not surface', async () => {
  const over = openSql(bench, { max: 3 })
  await expectWholePool(over.sql)
  // Until they are gone: a backend that was only told to go still dies under whatever is sent to it next.
  await until(async () => {
    const { rows } = await bench.sql(
      `select bool_or(pg_terminate_backend(pid)) as some from pg_stat_activity
         where application_name = 'postgres.js' and datname = current_database()`,
    )
    return rows[0].some === null
  })
  expect(await attempt(over, freshKey())).toBe('committed')
  expect(await over.store.claim(claimRequest(freshKey()))).toMatchObject({ claimed: true })
  await expectWholePool(over.sql)
})

test('the database goes down dead and comes back: the store goes on by itself', async () => {
  const server = await temporaryPostgres()
  const over = openSql({
    database: { connectionString: server.connectionString, drop: async () => undefined },
  })
  await over.store.migrate()
  await over.sql`create table effect (key text, note text)`
  const key = freshKey()
  const open = await over.store.transactions.begin(beginRequest(key))
  await Promise.all(Array.from({ length: 3 }, () => attempt(over, freshKey())))
  await server.kill()
  // Some find the connection refused, some are the first to learn that one from before is gone.
  await Promise.all(
    Array.from({ length: 10 }, () =>
      expect(attempt(over, freshKey())).rejects.toMatchObject({
        code: expect.stringMatching(/^(ECONNREFUSED|ECONNRESET|EPIPE|CONNECTION_CLOSED)$/),
      }),
    ),
  )
  await server.start()
  await open.rollback()
  await until(async () => (await attempt(over, key).catch(() => 'down')) === 'committed')
  await expectWholePool(over.sql)
  await over.sql.end({ timeout: 1 })
  await server.stop()
})

test('abandoning does not wait for the statement that runs', async () => {
  const over = openSql(bench, { max: 1 })
  const open = await over.store.transactions.begin(beginRequest(freshKey()))
  const cut = expect(open.tx`select pg_sleep(3600)`).rejects.toThrow()
  await new Promise((resume) => setImmediate(resume))
  await open.rollback('abandon')
  await cut
  await expectWholePool(over.sql)
})

test('more attempts than connections wait for the pool and all end', async () => {
  const over = openSql(bench, { max: 2 })
  const answers = await Promise.all(Array.from({ length: 40 }, () => attempt(over, freshKey())))
  expect(new Set(answers)).toEqual(new Set(['committed']))
  await expectWholePool(over.sql)
})

test('a pool that is full for too long refuses, and loses no connection to it', async () => {
  const over = openSql(bench, { max: 1 }, { answerTimeoutMs: 50 })
  const open = await over.store.transactions.begin(beginRequest(freshKey()))
  const late = over.store.transactions.begin(beginRequest(freshKey()))
  await expect(late).rejects.toThrow('did not answer within 50 ms')
  await open.rollback()
  await expectWholePool(over.sql)
  expect(await attempt(over, freshKey())).toBe('committed')
})

test('sql.end() waits for the attempt that runs, and refuses the next', async () => {
  const over = openSql(bench, { max: 1, idle_timeout: 1 })
  const open = await over.store.transactions.begin(beginRequest(freshKey()))
  const ended = over.sql.end()
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  await ended
  await expect(over.store.transactions.begin(beginRequest(freshKey()))).rejects.toMatchObject({
    code: 'CONNECTION_ENDED',
  })
})

test('a connection past its lifetime is closed after the attempt it served', async () => {
  const over = openSql(bench, { max: 1, max_lifetime: 0.05 })
  const pidOf = async () => {
    const open = await over.store.transactions.begin(beginRequest(freshKey()))
    const [row] = await open.tx`select pg_backend_pid() as pid, pg_sleep(0.1)`
    await open.save(wish)
    return row?.pid
  }
  expect(await pidOf()).not.toBe(await pidOf())
})

test('a failure inside leaves the transaction of the caller usable, also for postgres.js', async () => {
  const over = openSql(bench)
  const [key, taken] = [freshKey(), freshKey()]
  expect(await attempt(over, taken)).toBe('committed')
  await over.sql.begin(async (own) => {
    const duplicate = await over.store.transactions.within(own, beginRequest(taken))
    expect(duplicate.seen).toMatchObject({ state: 'done' })
    await duplicate.rollback()
    const open = await over.store.transactions.within(own, beginRequest(freshKey()))
    await expect(open.tx`select 1 / 0`).rejects.toMatchObject({ code: '22012' })
    await open.rollback()
    await own`insert into effect (key) values (${key})`
  })
  expect(await bench.effects(key)).toBe(1)
})

test('a caller whose connection dies is told, and nothing is sent on it any more', async () => {
  const over = openSql(bench, { max: 1 })
  const ended = over.sql.begin(async (own) => {
    const open = await over.store.transactions.within(own, beginRequest(freshKey()))
    const lost = new Promise((resolve) => open.onLost(resolve))
    const [row] = await own`select pg_backend_pid() as pid`
    await bench.sql('select pg_terminate_backend($1)', [row?.pid])
    await lost
    expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
    await open.rollback()
    // Its own ROLLBACK would be sent into a socket that is gone, by which postgres.js ends the process.
    await new Promise(() => undefined)
  })
  await expect(ended).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  await expectWholePool(over.sql)
})
