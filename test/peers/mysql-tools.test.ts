/** What every tool on MySQL must keep: its own transaction is the attempt's, with its errors, its savepoints and its ends. */
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import type { Pool, RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Retrysafe, retrysafe } from '../../dist/index.js'
import { expectOnce, expectThroughTx, planFaults, withFaults } from '../../dist/testing/index.js'
import { type Mariadb, startMariadb } from '../../servers/mariadb.js'
import { until } from '../setup/until.js'
import { type MysqlProxy, mysqlProxy } from './mysql-proxy.js'
import { noMariadb } from './mysql-suite.js'
import { promisePool } from './processes/mysql-store.js'
import type { MysqlToolClient } from './processes/mysql-tools/client.js'
import { mysqlTools } from './processes/mysql-tools/tools.js'
import { closeOutside, prepare } from './processes/mysql-tools-store.js'

/** A scope whose records the table refuses. */
const unreadable = 'a-tenant-that-nobody-may-read'
const records = 'retrysafe.retrysafe_intent'

describe.skipIf(noMariadb !== undefined)(`tools on MariaDB (${noMariadb ?? 'real'})`, () => {
  let server: Mariadb
  let url: string
  let admin: Pool

  beforeAll(async () => {
    // Neither is what the store's transactions run at.
    server = await startMariadb(['--transaction-isolation=REPEATABLE-READ', '--wait-timeout=20000'])
    url = `${server.url}/app`
    await prepare({ url, tool: 'Drizzle' })
    await closeOutside()
    admin = promisePool(url)
    await admin.query('create table stock (id int primary key, n int) engine = InnoDB')
    await admin.query('insert into stock values (1, 10), (2, 10)')
    await admin.query(`alter table ${records} add check (scope <> '${unreadable}')`)
  })

  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  describe.each(Object.entries(mysqlTools))('%s', (_name, open) => {
    let client: MysqlToolClient
    let safe: Retrysafe<object>
    let key: string
    const opened: MysqlToolClient[] = []

    beforeAll(async () => {
      client = await another()
      safe = retrysafe({ store: client.store() })
    })

    beforeEach(() => {
      key = randomUUID()
    })

    afterAll(() => Promise.all(opened.map((one) => one.end())))

    async function another(to = url): Promise<MysqlToolClient> {
      const more = await open(to)
      opened.push(more)
      return more
    }

    async function count(table: string): Promise<number> {
      const sql = `select count(*) as n from ${table} where \`key\` = ?`
      const [rows] = await admin.query<RowDataPacket[]>(sql, [table === records ? Buffer.from(key) : key])
      return Number(rows[0]?.n)
    }

    const effects = () => count('effect')
    const both = async () => [await effects(), await count(records)]
    const intent = () => ({ scope: 's', key })
    const effect = () => ({ key, payload: 'p', generation: 1 })

    /** A number of the server's, whatever the tool makes of an answer. */
    async function asked(tx: object, what: string): Promise<number> {
      const answer = inspect(await client.run(tx, `select ${what} as it`), { depth: 6 })
      return Number(/\bit: '?(\d+)/.exec(answer)?.[1])
    }

    test('effect and key commit together, and a retry is the first answer', async () => {
      const place = () =>
        safe.transaction(intent(), async ({ tx }) => {
          await client.insert(tx, effect())
          return { placed: key }
        })
      expect(await place()).toEqual({ value: { placed: key }, replayed: false })
      expect(await both()).toEqual([1, 1])
      expect(await place()).toEqual({ value: { placed: key }, replayed: true })
      expect(await effects()).toBe(1)
    })

    test('a throw leaves neither the effect nor the key, and is what the caller gets', async () => {
      const mistake = new Error('the work has failed')
      const failing = safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        throw mistake
      })
      expect(await failing.catch((error: unknown) => error)).toBe(mistake)
      expect(await both()).toEqual([0, 0])
    })

    test("the work's own constraint passes through as the error of the tool, and frees the key", async () => {
      const twice = safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        await client.insertUnique(tx, key)
        await client.insertUnique(tx, key)
      })
      const error = await twice.catch((thrown: unknown) => thrown)
      expect((error as object).constructor.name).toBe(client.violation)
      expect(inspect(error)).toContain('ER_DUP_ENTRY')
      expect(await both()).toEqual([0, 0])
      expect(await count('unique_effect')).toBe(0)
    })

    test('a kept failure rolls the work back and is the answer to a retry', async () => {
      const attempt = () =>
        safe.transaction(intent(), async ({ tx, keepFailure }) => {
          await client.insert(tx, effect())
          keepFailure()
          throw new Error('past the point of no return')
        })
      await expect(attempt()).rejects.toThrow('past the point of no return')
      await expect(attempt()).rejects.toThrow()
      expect(await both()).toEqual([0, 1])
    })

    test('of two processes with one key the second is told to come back, then gets the answer', async () => {
      const rival = await another()
      const other = retrysafe({ store: rival.store() })
      let second: unknown
      const first = await safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        second = await other
          .transaction(intent(), ({ tx: theirs }) => rival.insert(theirs, effect()))
          .catch((error: unknown) => error)
        return 'first'
      })
      expect(second).toMatchObject({ code: 'IN_PROGRESS', status: 409 })
      const retry = await other.transaction(intent(), () => 'second')
      expect([first, retry]).toEqual([
        { value: 'first', replayed: false },
        { value: 'first', replayed: true },
      ])
      expect(await effects()).toBe(1)
    })

    test('five at once are one effect', async () => {
      const place = ({ tx }: { readonly tx: object }) => client.insert(tx, effect()).then(() => 'placed')
      await expectOnce({ attempt: () => safe.transaction(intent(), place), effects, safe, sequential: true })
    })

    test("the tool's own savepoint is rolled back alone", async () => {
      await safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        const failing = client.nested(tx, async (inner) => {
          await client.insert(inner, effect())
          throw new Error('only this')
        })
        await expect(failing).rejects.toThrow('only this')
        await client.nested(tx, (inner) => client.insert(inner, effect()))
      })
      expect(await effects()).toBe(2)
    })

    test.each(['commit', 'rollback', 'create table if not exists made (id int)'])(
      'a transaction that the work ends by %s is not taken for saved',
      async (ending) => {
        const attempt = safe.transaction(intent(), async ({ tx }) => {
          await client.run(tx, ending)
          return 'placed'
        })
        await expect(attempt).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
      },
    )

    test.each([
      ['swallows', 'TRANSACTION_ABORTED'],
      ['does not catch', 'TRANSACTION_CONFLICT'],
    ])('a deadlock that the work %s leaves nothing of it, and is told', async (how, code) => {
      const rival = await admin.getConnection()
      const take = (id: number) => `update stock set n = n - 1 where id = ${id}`
      const attempt = safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        await client.run(tx, take(1))
        await rival.query('start transaction')
        // More rows written than ours, so that ours is the victim.
        for (let row = 0; row < 20; row += 1)
          await rival.query("insert into effect (`key`, payload) values ('rival', '')")
        await rival.query(take(2))
        const waiting = client.run(tx, take(2)).then(
          () => undefined,
          (error: unknown) => error,
        )
        await rival.query(take(1))
        await rival.query('rollback')
        const error = await waiting
        expect(inspect(error)).toContain('1213')
        if (how !== 'swallows') throw error
      })
      await expect(attempt).rejects.toMatchObject({ code })
      rival.release()
      expect(await both()).toEqual([0, 0])
    })

    test('what was sent beside the victim of a deadlock leaves nothing, and the next attempt takes effect once', async () => {
      const rival = await admin.getConnection()
      const take = (id: number) => `update stock set n = n - 1 where id = ${id}`
      const attempt = (fails: boolean) =>
        safe.transaction(intent(), async ({ tx }) => {
          if (!fails) return client.insert(tx, effect())
          await client.run(tx, take(1))
          await rival.query('start transaction')
          for (let row = 0; row < 20; row += 1)
            await rival.query("insert into effect (`key`, payload) values ('rival', '')")
          await rival.query(take(2))
          // Sent at once, as with Promise.all: the second runs when the server has rolled everything back.
          const ends = Promise.allSettled([client.run(tx, take(2)), client.insert(tx, effect())])
          await rival.query(take(1))
          await rival.query('rollback')
          const [first] = await ends
          expect(inspect(first)).toContain('1213')
          throw new Error('given up')
        })
      await expect(attempt(true)).rejects.toThrow()
      expect(await both()).toEqual([0, 0])
      await attempt(false)
      rival.release()
      expect(await both()).toEqual([1, 1])
    })

    test('a write through the root client behind attempts of every end commits by itself, as before them', async () => {
      await safe.transaction(intent(), ({ tx }) => client.insert(tx, effect()))
      await expect(
        safe.transaction({ ...intent(), key: randomUUID() }, () => Promise.reject(new Error('no'))),
      ).rejects.toThrow('no')
      expect(await effects()).toBe(1)
      await client.insert(undefined, effect())
      expect(await effects()).toBe(2)
    })

    describe('through a connection that is cut', () => {
      let proxy: MysqlProxy
      let cut: MysqlToolClient

      beforeAll(async () => {
        const through = new URL(url)
        proxy = await mysqlProxy(Number(through.port))
        through.port = String(proxy.port)
        cut = await another(through.href)
      })

      afterAll(() => proxy.close())

      const place = () =>
        retrysafe({ store: cut.store() }).transaction(intent(), async ({ tx }) => {
          await cut.insert(tx, effect())
          return 'placed'
        })

      test('a COMMIT whose answer is lost is read back', async () => {
        proxy.cut('commit', 'after')
        const before = proxy.cuts()
        expect(await place()).toEqual({ value: 'placed', replayed: false })
        expect(proxy.cuts()).toBe(before + 1)
        expect(await place()).toEqual({ value: 'placed', replayed: true })
        expect(await effects()).toBe(1)
      })

      test('a COMMIT that never arrives is no success, and the next attempt runs', async () => {
        proxy.cut('commit', 'before')
        const error = await place().catch((thrown: unknown) => thrown)
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(
          Buffer.from(key).toString('hex'),
        )
        expect(await effects()).toBe(0)
        expect(await place()).toEqual({ value: 'placed', replayed: false })
        expect(await effects()).toBe(1)
      })
    })

    test('a server that ends the connection under the work ends the attempt, and not the process', async () => {
      let killed = false
      const attempt = () =>
        safe.transaction(intent(), async ({ tx }) => {
          await client.insert(tx, effect())
          if (killed) return
          killed = true
          await admin.query(`kill ${await asked(tx, 'connection_id()')}`)
          await client.insert(tx, effect())
        })
      await expect(attempt()).rejects.toThrow()
      expect(await both()).toEqual([0, 0])
      // Tools give the dead connection back, and find out with the next one who takes it.
      await until(() =>
        attempt().then(
          () => true,
          () => false,
        ),
      )
      expect(await effects()).toBe(1)
    })

    test('an attempt runs at READ COMMITTED with a limit for its silence, and leaves no setting behind', async () => {
      const limit = '@@session.wait_timeout'
      await safe.transaction(intent(), async ({ tx }) => {
        const look = () => asked(tx, '(select n from stock where id = 1)')
        const before = await look()
        await admin.query('update stock set n = n + 1 where id = 1')
        expect([await look(), await asked(tx, limit)]).toEqual([before + 1, 30])
      })
      const failing = safe.transaction({ scope: 's', key: randomUUID() }, async () => {
        throw new Error('rolled back')
      })
      await expect(failing).rejects.toThrow('rolled back')
      // As many as the tool has connections.
      const all = Array.from({ length: 5 }, () =>
        client.transaction(async (tx) => expect(await asked(tx, limit)).toBe(20_000)),
      )
      await Promise.all(all)
    })

    test.each(['transaction', 'run'] as const)('what fails in %s quotes no row of ours', async (mode) => {
      const told: unknown[] = []
      const stop = safe.on('storeError', (event) => told.push(event))
      const refused = { scope: unreadable, key }
      const error = await safe[mode](refused, () => 'done').catch((thrown: unknown) => thrown)
      stop()
      const text = inspect([error, told], { depth: 20, showHidden: true })
      expect(text).toContain('4025')
      expect(text).not.toContain(Buffer.from(key).toString('hex'))
      expect(text).not.toContain(Buffer.from(unreadable).toString('hex'))
    })

    test('within the transaction that its user has opened, effect and key are true when it commits', async () => {
      const write = (tx: object) =>
        safe.within(tx, intent(), async ({ tx: inside }) => {
          await client.insert(inside, effect())
          return 'placed'
        })
      const failing = client.transaction(async (tx) => {
        expect(await write(tx)).toEqual({ value: 'placed', replayed: false })
        throw new Error('rolled back')
      })
      await expect(failing).rejects.toThrow('rolled back')
      expect(await both()).toEqual([0, 0])
      await client.transaction(async (tx) => {
        await write(tx)
        expect(await write(tx)).toEqual({ value: 'placed', replayed: true })
        // Ours is over, theirs is not.
        await client.insert(tx, effect())
      })
      expect(await both()).toEqual([2, 1])
    })

    test('within work of ours, another intent commits with it', async () => {
      const inner = { scope: 'inner', key }
      await safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        await safe.within(tx, inner, ({ tx: inside }) => client.insert(inside, effect()).then(() => null))
      })
      expect(await both()).toEqual([2, 2])
    })

    test('nothing is sent through tx once the attempt is over', async () => {
      let kept: object = {}
      await safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        kept = tx
      })
      await expect((async () => client.insert(kept, effect()))()).rejects.toThrow('attempt is over')
      expect(await effects()).toBe(1)
    })

    test('the test kit finds work that writes through the root client', async () => {
      const faults = planFaults()
      const faulty = retrysafe({ store: withFaults(client.store(), faults), mode: 'transaction' })
      const attempt = (work: (tx: object) => Promise<unknown>) => () =>
        faulty.transaction(intent(), ({ tx }) => work(tx).then(() => 'placed'))
      await expectThroughTx({ faults, attempt: attempt((tx) => client.insert(tx, effect())), effects })
      key = randomUUID()
      const past = attempt(async (tx) => {
        await client.insert(tx, effect())
        await client.insert(undefined, effect())
      })
      await expect(expectThroughTx({ faults, attempt: past, effects })).rejects.toThrow('wrote past tx')
    })
  })
})
