/** Flights over postgres.js: one message, values as literals, prepared or not, whatever the user has done to types and names. */
import fc from 'fast-check'
import postgresJs from 'postgres'
import { postgres } from 'retrysafe/postgres'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../../dist/stores/postgres/driver.js'
import { postgresJs as driverOf } from '../../dist/stores/postgres/postgres-js.js'
import { named } from '../../dist/stores/postgres/statements.js'
import { openProxy } from '../setup/proxy.js'
import { type Bench, beginRequest, claimRequest, freshKey, openBench, wish } from './harness.js'
import { closeAllSql, expectWholePool, openSql } from './postgres-js-harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterEach(closeAllSql)
afterAll(() => bench.close())

const begin = call(named('begin'))
const one = call(named('select $1::int + 1'), '1')
const wrong = call(named('select * from nowhere'))
const raises = call(named('select 1 / $1::int'), '0')

describe.each([
  ['unnamed statements', false],
  ['prepared statements', true],
] as const)('a flight with %s', (_name, prepare) => {
  const open = () => driverOf(openSql(bench, { max: 1 }).sql, prepare)

  test('answers each statement in order', async () => {
    const session = await open().acquire()
    await session.flight([begin])
    for (let round = 0; round < 3; round += 1) {
      const { results } = await session.flight([one, call(named('select null, true')), one])
      expect(results?.map(({ rows }) => rows)).toEqual([[['2']], [[null, 't']], [['2']]])
    }
    expect((await session.flight([call(named('commit'))])).results?.at(-1)?.tag).toBe('COMMIT')
    session.release()
  })

  test('says which statement failed, skips the rest, and flies again', async () => {
    const driver = open()
    for (const failing of [wrong, raises, wrong, raises]) {
      const session = await driver.acquire()
      await session.flight([begin])
      const { failure } = await session.flight([
        one,
        call(named('savepoint s')),
        failing,
        call(named('commit')),
      ])
      expect(failure).toMatchObject({ index: 2, error: { severity: 'ERROR' } })
      // COMMIT was skipped: the transaction is still there, and still failed.
      expect((await session.flight([one])).failure).toMatchObject({ index: 0, error: { code: '25P02' } })
      expect((await session.flight([call(named('rollback')), one])).results?.[1]?.rows).toEqual([['2']])
      session.release()
    }
  })

  test('carries every text and every bytes', async () => {
    const session = await open().acquire()
    await session.flight([begin])
    const echo = named(`select $1::text, encode($2::bytea, 'hex')`)
    const texts = fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => !text.includes('\0'))
    await fc.assert(
      fc.asyncProperty(texts, fc.uint8Array({ maxLength: 40 }), async (text, bytes) => {
        const { results } = await session.flight([call(echo, text, Buffer.from(bytes))])
        expect(results?.[0]?.rows).toEqual([[text, Buffer.from(bytes).toString('hex')]])
      }),
      {
        examples: [
          ["'; drop table effect; --", new Uint8Array()],
          ["\\'$1", new Uint8Array([39, 92])],
        ],
      },
    )
    await session.flight([call(named('rollback'))])
  })
})

test('a claim is one round trip, and save and COMMIT are one', async () => {
  const proxy = await openProxy(bench.database.connectionString)
  for (const prepare of [false, true]) {
    const over = { ...bench, database: { ...bench.database, connectionString: proxy.connectionString } }
    const { sql, store } = openSql(over, { max: 1 }, { prepare })
    const turns = async () => {
      const start = proxy.turns()
      const open = await store.transactions.begin(beginRequest(freshKey()))
      const begun = proxy.turns()
      await open.save(wish)
      return [begun - start, proxy.turns() - begun]
    }
    await turns()
    expect(await turns()).toEqual([1, 1])
    await sql.end()
  }
  proxy.close()
})

test('prepared statements that somebody has discarded cost one fresh connection, and no error', async () => {
  const { sql, store } = openSql(bench, { max: 1 }, { prepare: true })
  const attempt = async () => {
    const open = await store.transactions.begin(beginRequest(freshKey()))
    return open.save(wish)
  }
  expect(await attempt()).toEqual({ kind: 'committed' })
  await sql`discard all`
  expect(await attempt()).toEqual({ kind: 'committed' })
})

test('nothing is prepared where postgres.js was told not to', async () => {
  const { sql, store } = openSql(bench, { max: 1, prepare: false }, { prepare: true })
  const open = await store.transactions.begin(beginRequest(freshKey()))
  await open.save(wish)
  expect(await sql`select name from pg_prepared_statements`).toHaveLength(0)
})

test('a row transform is refused, because it would be applied to the records', () => {
  const sql = postgresJs(bench.database.connectionString, { transform: { row: { from: (row) => row } } })
  expect(() => postgres(sql)).toThrow('transform.row')
})

test('an error of the connection tells nothing of a record', async () => {
  const { sql, store } = openSql(bench, { max: 1 })
  const key = freshKey()
  const locked = await bench.pool.connect()
  await locked.query('begin; lock table retrysafe.intent')
  const claim = store.claim(claimRequest(key)).catch((error: object) => error)
  const waits = async () =>
    (
      await bench.sql(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
    ).rowCount === 1
  while (!(await waits())) await new Promise((resume) => setImmediate(resume))
  await bench.sql(`select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'
    and datname = current_database()`)
  const error = (await claim) as { query?: string }
  expect(error.query).toBe('a statement of retrysafe')
  await locked.query('rollback')
  locked.release()
  await expectWholePool(sql)
})
