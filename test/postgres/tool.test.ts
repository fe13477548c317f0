/** Any tool: how its transactions end, and what its `tx` is to the work. */
import type pg from 'pg'
import { type PostgresTool, postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodePostgresPool, toolOn } from '../processes/clients.js'
import { openProxy } from '../setup/proxy.js'
import { type Bench, beginRequest, claimRequest, freshKey, openBench, until, wish } from './harness.js'

let bench: Bench
let pool: pg.Pool
let tool: PostgresTool<pg.PoolClient>

beforeAll(async () => {
  bench = await openBench()
  pool = nodePostgresPool(bench.database.connectionString)
  tool = toolOn(pool)
  await bench.sql(
    'create table strict_effect (key text constraint one_each unique deferrable initially deferred)',
  )
})

afterAll(async () => {
  // None is checked out, whatever happened before.
  expect(pool.totalCount - pool.idleCount).toBe(0)
  await pool.end()
  await bench.close()
})

const insert = 'insert into effect (key) values ($1)'

test('the isolation level is said in words, whatever the session defaults to', async () => {
  const strict = nodePostgresPool(
    `${bench.database.connectionString}?options=-c%20default_transaction_isolation%3Dserializable`,
  )
  const open = await postgres(toolOn(strict)).transactions.begin(beginRequest(freshKey()))
  const { rows } = await open.tx.query('show transaction_isolation')
  expect(rows[0].transaction_isolation).toBe('read committed')
  await open.rollback()
  await strict.end()
})

test('a constraint that fails at the COMMIT of the tool rolls everything back, with its error', async () => {
  const key = freshKey()
  await bench.sql('insert into strict_effect values ($1)', [key])
  const open = await postgres(tool).transactions.begin(beginRequest(key))
  await open.tx.query('insert into strict_effect values ($1)', [key])
  const answer = await open.save(wish)
  expect(answer).toMatchObject({ kind: 'rolledBack', error: { code: '23505', constraint: 'one_each' } })
  await open.rollback()
})

test('a commit whose answer was lost is ambiguous, and so is one whose error has no SQLSTATE', async () => {
  const proxy = await openProxy(bench.database.connectionString)
  const proxied = nodePostgresPool(proxy.connectionString)
  const request = beginRequest(freshKey())
  const open = await postgres(toolOn(proxied)).transactions.begin(request)
  proxy.swallow()
  expect(await open.save(wish)).toMatchObject({ kind: 'ambiguous' })
  await open.rollback()
  await proxied.end()
  proxy.close()

  const discreet = postgres<pg.PoolClient>({
    ...tool,
    transaction: (work) =>
      tool.transaction(work).catch(() => {
        throw new Error('the tool has failed')
      }),
  })
  const key = freshKey()
  await bench.sql('insert into strict_effect values ($1)', [key])
  const other = await discreet.transactions.begin(beginRequest(key))
  await other.tx.query('insert into strict_effect values ($1)', [key])
  expect(await other.save(wish)).toMatchObject({ kind: 'ambiguous' })
  await other.rollback()
  const read = await discreet.transactions.readBack({ key, scope: 'tenant' }, Date.now())
  expect(read).toEqual({ undecided: false })
})

test('a COMMIT that the server answers with ROLLBACK is no success, though the tool hides it', async () => {
  const late = postgres<pg.PoolClient>({
    ...tool,
    transaction: (work) =>
      tool.transaction(async (tx) => {
        const value = await work(tx)
        // A statement that the work has left behind fails between our save and COMMIT.
        await tx.query('select 1 / 0').catch(() => undefined)
        return value
      }),
  })
  const key = freshKey()
  const open = await late.transactions.begin(beginRequest(key))
  await open.tx.query(insert, [key])
  expect(await open.save(wish)).toEqual({ kind: 'aborted' })
  expect([await bench.effects(key), await bench.store.find({ key, scope: 'tenant' }, Date.now())]).toEqual([
    0,
    undefined,
  ])
})

test('what a method of tx has begun is awaited before the end', async () => {
  const key = freshKey()
  const open = await postgres(tool).transactions.begin(beginRequest(key))
  let finish: () => void = () => undefined
  const slow = new Promise<void>((resolve) => {
    finish = resolve
  })
  Object.assign(open.tx, { slow: () => slow })
  void (open.tx as unknown as { slow(): Promise<void> }).slow()
  let saved = false
  const saving = open.save(wish).finally(() => {
    saved = true
  })
  await bench.sql('select 1')
  expect(saved).toBe(false)
  finish()
  expect(await saving).toEqual({ kind: 'committed' })
})

test('a transaction that the tool ends by itself is told, and nothing is stored', async () => {
  const impatient = postgres<pg.PoolClient>({
    ...tool,
    transaction: (work) =>
      tool.transaction((tx) => Promise.race([work(tx), Promise.reject(new Error('timed out'))])),
  })
  const key = freshKey()
  const begun = impatient.transactions.begin(beginRequest(key))
  const open = await begun.catch(() => undefined)
  if (open !== undefined) {
    await new Promise((resolve) => open.onLost(resolve))
    expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  }
  expect(await bench.store.find({ key, scope: 'tenant' }, Date.now())).toBeUndefined()
})

test('a tool that runs its work again is refused: the first run may have been told of a claim', async () => {
  let runs = 0
  const again: PostgresTool<pg.PoolClient> = {
    ...tool,
    transaction: async (work) => {
      runs += 1
      return tool.transaction(work).catch(() => tool.transaction(work))
    },
  }
  const key = freshKey()
  const open = await postgres(again).transactions.begin(beginRequest(key))
  await open.tx.query(insert, [key])
  await open.rollback()
  expect([runs, await bench.effects(key)]).toEqual([1, 0])
})

test('a tool without a connection to give is given up, and leaves none behind', async () => {
  const store = postgres(tool, { answerTimeoutMs: 100 })
  const taken = await Promise.all(Array.from({ length: 5 }, () => pool.connect()))
  await expect(store.transactions.begin(beginRequest(freshKey()))).rejects.toThrow('within 100 ms')
  await expect(store.claim(claimRequest(freshKey()))).rejects.toThrow('within 100 ms')
  for (const client of taken) client.release()
  await until(() => pool.waitingCount === 0 && pool.totalCount === pool.idleCount)
})

test('tx is the object of the tool to the work: its methods, members and class', async () => {
  class Orm {
    readonly #secret = 7
    readonly nested = { deep: Object.assign(() => 'called', { own: 'kept' }) }
    reveal() {
      return this.#secret
    }
  }
  const orm = new Orm()
  const store = postgres<Orm>({
    transaction: (work) => tool.transaction((client) => work(Object.assign(orm, { client }))),
    query: (tx, text) => tool.query((tx as { client?: pg.PoolClient } | undefined)?.client, text),
  })
  const { tx, used, rollback } = await store.transactions.begin(beginRequest(freshKey()))
  expect(tx).toBeInstanceOf(Orm)
  expect(used()).toBe(false)
  expect(tx.reveal()).toBe(7)
  expect([tx.nested.deep(), tx.nested.deep.own, Object.keys(tx).includes('nested')]).toEqual([
    'called',
    'kept',
    true,
  ])
  expect(used()).toBe(true)
  await rollback()
  expect(() => tx.reveal()).toThrow('attempt is over')
})
