/** Several statements in one flight, prepared or not, with clients of every kind. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../../dist/stores/postgres/driver.js'
import { nodePostgres } from '../../dist/stores/postgres/node-postgres.js'
import { named } from '../../dist/stores/postgres/statements.js'
import { attempt, type Bench, claimRequest, freshKey, openBench } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

const one = call(named('select $1::int + 1'), '1')
const wrong = call(named('select * from nowhere'))
const raises = call(named('select 1 / $1::int'), '0')

describe.each([
  ['unnamed statements', false, {}],
  ['prepared statements', true, {}],
  ['a client in pipeline mode', false, { pipeline: true }],
])('a flight with %s', (_name, prepare, config) => {
  const open = () => {
    const pool = new pg.Pool({ connectionString: bench.database.connectionString, max: 1, ...config })
    return { pool, driver: nodePostgres(pool, prepare) }
  }

  test('answers each statement in order', async () => {
    const { pool, driver } = open()
    const session = await driver.acquire()
    for (let round = 0; round < 3; round += 1) {
      const { results } = await session.flight([one, call(named('select null, true')), one])
      expect(results?.map(({ rows }) => rows)).toEqual([[['2']], [[null, 't']], [['2']]])
    }
    session.release()
    await pool.end()
  })

  test('says which statement failed, skips the rest, and flies again', async () => {
    const { pool, driver } = open()
    const session = await driver.acquire()
    for (const failing of [wrong, raises, wrong, raises]) {
      await session.flight([call(named('begin'))])
      const { failure } = await session.flight([one, failing, call(named('commit'))])
      expect(failure).toMatchObject({ index: 1, error: { severity: 'ERROR' } })
      const { results } = await session.flight([call(named('rollback')), one])
      expect(results?.[1]?.rows).toEqual([['2']])
    }
    session.release()
    await pool.end()
  })

  test('serves whole attempts', async () => {
    const { pool, store } = bench.another({ prepare }, { max: 2, ...config })
    for (let round = 0; round < 3; round += 1) expect(await attempt(store, freshKey())).toBe('committed')
    expect(await store.claim(claimRequest(freshKey()))).toMatchObject({ claimed: true })
    expect(pool.totalCount).toBe(pool.idleCount)
  })
})

test('two stores on one connection share its prepared statements', async () => {
  const pool = new pg.Pool({ connectionString: bench.database.connectionString, max: 1 })
  for (const driver of [nodePostgres(pool, true), nodePostgres(pool, true)]) {
    const session = await driver.acquire()
    expect((await session.flight([one])).results?.[0]?.rows).toEqual([['2']])
    session.release()
  }
  await pool.end()
})

test('a name that the user has given to another statement is not used', async () => {
  const pool = new pg.Pool({ connectionString: bench.database.connectionString, max: 1 })
  await pool.query({ name: one.statement.name, text: 'select 99' })
  const session = await nodePostgres(pool, true).acquire()
  expect((await session.flight([one])).results?.[0]?.rows).toEqual([['2']])
  session.release()
  await pool.end()
})

test('prepared statements that somebody has discarded cost one fresh connection, and no error', async () => {
  const { pool, store } = bench.another({ prepare: true }, { max: 1 })
  expect(await attempt(store, freshKey())).toBe('committed')
  await pool.query('discard all')
  expect(await attempt(store, freshKey())).toBe('committed')
  expect(pool.totalCount).toBe(1)
})
