/**
 * What a database, a session or the user's own code can do to a transaction: each ends in the right error, with nothing half-written,
 * and a retry makes the one effect.
 */
import type { Socket } from 'node:net'
import pg from 'pg'
import { isRetrysafeError, type Retrysafe, retrysafe } from 'retrysafe'
import { type PgTx, postgres } from 'retrysafe/postgres'
import { type CuttingProxy, cuttingProxy } from 'retrysafe/testing'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { until } from '../setup/until.js'

type Tx = PgTx<pg.Pool>

let database: FreshDatabase
let outside: pg.Pool
let proxy: CuttingProxy
const pools: pg.Pool[] = []

beforeAll(async () => {
  database = await freshDatabase()
  outside = new pg.Pool({ connectionString: database.connectionString })
  await postgres(outside).migrate()
  await outside.query('create table effects (key text)')
  await outside.query(
    'create table strict (key text, constraint one_each unique (key) deferrable initially deferred)',
  )
  proxy = await cuttingProxy({ port: Number(new URL(database.connectionString).port) })
})

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()))
})

afterAll(async () => {
  await proxy?.close()
  await outside?.end()
  await database?.drop()
})

function instance(through?: CuttingProxy): { safe: Retrysafe<Tx>; pool: pg.Pool } {
  const url = new URL(database.connectionString)
  if (through !== undefined) url.port = String(through.port)
  const pool = new pg.Pool({ connectionString: url.href, max: 2, application_name: 'trapped' })
  pools.push(pool)
  return { pool, safe: retrysafe({ store: postgres(pool), leaseMs: 2000 }) }
}

type Write = (tx: Pick<Tx, 'query'>) => Promise<unknown>

/** The three ways to commit an effect with its outcome. */
const ways = {
  transaction: ({ safe }, key, write) => safe.transaction({ scope: 'alice', key }, ({ tx }) => write(tx)),
  commit: ({ safe }, key, write) => safe.run({ scope: 'alice', key }, ({ commit }) => commit(write)),
  within: async ({ safe, pool }, key, write) => {
    const client = await pool.connect()
    const ignore = () => undefined
    client.on('error', ignore)
    let broken = false
    try {
      await client.query('begin')
      const answer = await safe.within(client, { scope: 'alice', key }, ({ tx }) => write(tx))
      const { command } = await client.query('commit')
      if (command !== 'COMMIT') throw Object.assign(new Error(command), { code: command })
      return answer
    } catch (error) {
      await client.query('rollback').catch(() => {
        broken = true
      })
      throw error
    } finally {
      client.removeListener('error', ignore)
      client.release(broken)
    }
  },
} satisfies Record<
  string,
  (on: ReturnType<typeof instance>, key: string, write: Write) => Promise<{ replayed: boolean }>
>
const names = ['transaction', 'commit', 'within'] as const

function addEffect(key: string): Write {
  return (tx) => tx.query('insert into effects values ($1)', [key]).then(() => 'done')
}

async function effects(key: string): Promise<number> {
  const { rows } = await outside.query('select count(*)::int as n from effects where key = $1', [key])
  return rows[0].n
}

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => 'no error',
    (error: { code?: string }) => error.code ?? String(error),
  )
}

/** Nothing was stored, nothing is left open, and the next attempt makes the one effect. */
async function expectUntouched(way: (typeof names)[number], key: string, left = 0): Promise<void> {
  expect(await effects(key)).toBe(left)
  const { rows } = await outside.query('select state from retrysafe.intent where key = $1 and state = 3', [
    key,
  ])
  expect(rows).toEqual([])
  const open = `select 1 from pg_stat_activity where application_name = 'trapped' and state like 'idle in%'`
  await until(async () => (await outside.query(open)).rows.length === 0, 'the end of every transaction')
  const retry = instance()
  await until(async () => {
    const code = await codeOf(ways[way](retry, key, addEffect(key)))
    return code === 'no error' || !['IN_PROGRESS', 'STORE_UNAVAILABLE'].includes(code)
  })
  expect(await effects(key)).toBe(left + 1)
  expect(await ways[way](retry, key, addEffect(key))).toMatchObject({ replayed: true })
}

test.each(['transaction', 'commit'] as const)(
  'a COMMIT that the server answers with ROLLBACK is an error (%s)',
  async (way) => {
    const key = `rollback-${way}`
    const on = instance()
    const client = await on.pool.connect()
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    const { write } = stream
    // What a server does to a transaction that has failed behind our back: it answers COMMIT with ROLLBACK, and no error.
    stream.write = (bytes: Buffer, ...rest: []) =>
      write.call(
        stream,
        Buffer.from(bytes.toString('latin1').replaceAll('commit\0', 'abort \0'), 'latin1'),
        ...rest,
      )
    client.release()
    expect(await codeOf(ways[way](on, key, addEffect(key)))).toBe('TRANSACTION_ABORTED')
    stream.write = write
    await expectUntouched(way, key)
  },
)

test.each(names)(
  'a backend that is terminated at any message leaves nothing half-written (%s)',
  async (way) => {
    const first = instance(proxy)
    const clean = proxy.run()
    await ways[way](first, `clean-${way}`, addEffect('clean'))
    // Before the session is up there is nothing to terminate.
    const messages = [...clean.messages()].filter(({ type }) => type !== 'startup' && type !== 'p')
    await Promise.all(pools.splice(0).map((pool) => pool.end()))
    for (const { number } of messages) {
      const key = `terminated-${way}-${number}`
      const on = instance(proxy)
      const run = proxy.run({ at: number, act: 'holdBefore' })
      const attempt = codeOf(ways[way](on, key, addEffect(key)))
      await run.reached
      const { rows } = await outside.query(
        `select pid, pg_terminate_backend(pid) from pg_stat_activity where application_name = 'trapped'`,
      )
      expect(rows.length).toBeGreaterThan(0)
      const alive = 'select from pg_stat_activity where pid = any($1)'
      const pids = rows.map(({ pid }) => pid)
      await until(async () => (await outside.query(alive, [pids])).rowCount === 0, 'the end of the backend')
      run.release('go')
      const code = await attempt
      expect(['no error', 'STORE_UNAVAILABLE', 'LEASE_LOST', '57P01', 'ECONNRESET', 'EPIPE']).toContain(
        code.startsWith('Error: Connection terminated') ? 'ECONNRESET' : code,
      )
      const retry = instance()
      await until(async () => {
        const told = await codeOf(ways[way](retry, key, addEffect(key)))
        return told === 'no error'
      })
      expect(await effects(key)).toBe(1)
      await Promise.all(pools.splice(0).map((pool) => pool.end()))
    }
  },
)

test.each(['repeatable read', 'serializable'])(
  'sessions that default to %s lose and double nothing',
  async (level) => {
    const name = new URL(database.connectionString).pathname.slice(1)
    for (const setting of [`alter database ${name}`, `alter role current_user in database ${name}`]) {
      await outside.query(`${setting} set default_transaction_isolation = '${level}'`)
      for (const way of names) {
        const key = `${setting}-${level}-${way}`
        const services = Array.from({ length: 4 }, () => instance())
        const { rows } = (await services[0]?.pool.query('show default_transaction_isolation')) ?? { rows: [] }
        expect(rows).toEqual([{ default_transaction_isolation: level }])
        const all = services.map((on) =>
          until(async () => {
            const code = await codeOf(ways[way](on, key, addEffect(key)))
            expect([
              'no error',
              'IN_PROGRESS',
              'STORE_UNAVAILABLE',
              'TRANSACTION_CONFLICT',
              '40001',
            ]).toContain(code)
            return code === 'no error'
          }),
        )
        await Promise.all(all)
        expect(await effects(key)).toBe(1)
      }
      await outside.query(`${setting} reset default_transaction_isolation`)
    }
  },
)

test.each(names)('a deferred constraint that fails at COMMIT is the work’s own error (%s)', async (way) => {
  const key = `deferred-${way}`
  await outside.query('insert into strict values ($1)', [key])
  const write: Write = async (tx) => {
    await addEffect(key)(tx)
    await tx.query('insert into strict values ($1)', [key])
  }
  expect(await codeOf(ways[way](instance(), key, write))).toBe('23505')
  await expectUntouched(way, key)
})

test.each(names)('COMMIT, in whatever dress, is refused inside the work (%s)', async (way) => {
  await outside.query(`create or replace procedure sneak() language plpgsql as $$ begin commit; end $$`)
  const dresses = {
    COMMIT: 'TRANSACTION_ABORTED',
    'select 1; commit': 'TRANSACTION_ABORTED',
    'do $$ begin commit; end $$': '2D000',
    'call sneak()': '2D000',
  }
  for (const [text, code] of Object.entries(dresses)) {
    const key = `${text}-${way}`
    const write: Write = async (tx) => {
      await addEffect(key)(tx)
      await tx.query(text)
    }
    expect(await codeOf(ways[way](instance(), key, write)), text).toBe(code)
    await expectUntouched(way, key)
  }
})

test.each(['transaction', 'commit'] as const)(
  'a COMMIT past the guard, on the client itself, is told, and its outcome is not stored (%s)',
  async (way) => {
    const key = `raw-${way}`
    const on = instance()
    let client: pg.PoolClient | undefined
    on.pool.on('acquire', (acquired) => {
      client = acquired
    })
    const write: Write = async (tx) => {
      await addEffect(key)(tx)
      await client?.query('commit')
    }
    const attempt = ways[way](on, key, write)
    await expect(attempt).rejects.toSatisfy(isRetrysafeError)
    expect(await codeOf(attempt)).toBe('TRANSACTION_ABORTED')
    // What the work has committed by itself cannot be undone; what it has not is no outcome.
    await expectUntouched(way, key, 1)
  },
)
