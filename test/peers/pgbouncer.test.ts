/** Behind PgBouncer in transaction mode (Debian's 1.18): every transaction may be served by another connection of the server. */
import pg from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { retrysafe } from '../../dist/index.js'
import { type PostgresStore, postgres } from '../../dist/stores/postgres.js'
import { type PgBouncer, pgBouncerProgram, startPgBouncer } from '../../servers/pgbouncer.js'
import { type Bench, beginRequest, freshKey, openBench, until, wish } from '../postgres/harness.js'
import { postgresSuite } from '../suites/postgres-suite.js'
import { missing } from './debian.js'

const reason = missing(pgBouncerProgram, 'pgbouncer')
/** Server connections for each database: all of them are looked into afterwards. */
const poolSize = 12

describe.skipIf(reason !== undefined)(`behind PgBouncer (${reason ?? 'transaction mode'})`, () => {
  let bouncer: PgBouncer

  beforeAll(async () => {
    bouncer = await startPgBouncer({ connectionString: inject('connectionString'), poolSize })
  })

  afterAll(() => bouncer.stop())

  describe('node-postgres', () => {
    postgresSuite({}, {}, 'node-postgres', (direct) => bouncer.through(direct))
  })

  describe('postgres.js without named statements', () => {
    postgresSuite({}, {}, 'postgres.js, own types', (direct) => bouncer.through(direct))
  })

  describe('what is left on the connections of the server', () => {
    let bench: Bench
    let pool: pg.Pool
    let sql: postgresJs.Sql

    beforeAll(async () => {
      bench = await openBench()
      const connectionString = bouncer.through(bench.database.connectionString)
      pool = new pg.Pool({ connectionString, max: 20 })
      pool.on('error', () => undefined)
      sql = postgresJs(connectionString, { max: 20, prepare: false, onnotice: () => undefined })
    })

    afterAll(async () => {
      await pool.end()
      await sql.end({ timeout: 1 })
      await bench.close()
    })

    /** Advisory locks of the database, held by whomever. */
    async function locks(): Promise<number> {
      const { rows } = await bench.sql(`select count(*)::int as n from pg_locks
        where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
      return rows[0].n
    }

    /** What each of the pooler's connections has in its session, looked at while transactions hold all of them. */
    async function sessions(): Promise<readonly { pid: number; timeout: string; prepared: number }[]> {
      let held = 0
      const look = async () => {
        const client = await pool.connect()
        await client.query('begin')
        const { rows } = await client.query(`select pg_backend_pid() as pid,
          current_setting('idle_in_transaction_session_timeout') as timeout,
          (select count(*)::int from pg_prepared_statements) as prepared`)
        held += 1
        await until(() => held === poolSize)
        await client.query('commit')
        client.release()
        return rows[0]
      }
      return Promise.all(Array.from({ length: poolSize }, look))
    }

    const insert = 'insert into effect (key) values ($1)'

    test.each(['node-postgres', 'postgres.js'])(
      'rivals that keep failures leave no lock and no setting behind (%s)',
      async (client) => {
        const store = (client === 'postgres.js' ? postgres(sql) : postgres(pool)) as PostgresStore<pg.Pool>
        const safe = retrysafe({ store, whileRunning: { waitMs: 10_000 } })
        const write = (tx: pg.Pool, key: string) =>
          client === 'postgres.js'
            ? (tx as unknown as postgresJs.Sql).unsafe(insert, [key])
            : tx.query(insert, [key])
        const keys = Array.from({ length: 60 }, freshKey)
        let runs = 0
        const attempt = (key: string) =>
          safe
            .transaction({ scope: 's', key }, async ({ tx, keepFailure }) => {
              runs += 1
              await write(tx, key)
              keepFailure()
              throw new Error('past the point of no return')
            })
            .catch(() => undefined)
        await Promise.all(keys.flatMap((key) => [attempt(key), attempt(key), attempt(key), attempt(key)]))
        expect(runs).toBe(keys.length)
        const counts = await Promise.all(keys.map((key) => bench.effects(key)))
        expect(counts.filter((count) => count !== 0)).toEqual([])
        expect(await locks()).toBe(0)
        const seen = await sessions()
        expect(new Set(seen.map(({ pid }) => pid)).size).toBe(poolSize)
        expect(new Set(seen.map(({ timeout, prepared }) => `${timeout} ${prepared}`))).toEqual(
          new Set(['0 0']),
        )
      },
    )

    test('a client that dies while it holds a lock for its session takes the lock along', async () => {
      const own = new pg.Pool({ connectionString: bouncer.through(bench.database.connectionString) })
      own.on('error', () => undefined)
      const request = beginRequest(freshKey())
      const open = await postgres(own).transactions.begin(request)
      open.pin()
      await open.tx.query('select 1')
      expect(await locks()).toBeGreaterThan(0)
      await open.rollback('abandon')
      await until(async () => (await locks()) === 0)
      const next = await postgres(pool).transactions.begin(request)
      expect(next.granted).toBe(true)
      expect(await next.save(wish)).toEqual({ kind: 'committed' })
      await own.end()
    })

    test('leases are renewed through it, on a connection of their own', async () => {
      const store = postgres(pool)
      const safe = retrysafe({ store, leaseMs: 1500 })
      const key = freshKey()
      const { value } = await safe.run({ scope: 's', key }, async ({ signal }) => {
        const ends = async () => {
          const { rows } = await bench.sql('select ends_at from retrysafe.intent where key = $1', [key])
          return Number(rows[0].ends_at)
        }
        const first = await ends()
        await until(async () => (await ends()) > first || signal.aborted)
        return signal.aborted
      })
      expect(value).toBe(false)
      await store.close()
    })
  })
})
