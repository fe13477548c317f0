/** What every tool on PostgreSQL must keep: its own transaction is the attempt's, with its errors, its savepoints and its ends. */
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Retrysafe, retrysafe } from '../../dist/index.js'
import {
  type CutMessage,
  type CuttingProxy,
  cuttingProxy,
  expectOnce,
  expectThroughTx,
  planFaults,
  withFaults,
} from '../../dist/testing/index.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { until } from '../setup/until.js'
import type { ToolClient } from './processes/tools/client.js'
import { everyTool } from './processes/tools/tools.js'

/** A scope whose records the table refuses. */
const unreadable = 'a-tenant-that-nobody-may-read'

describe.each(everyTool)('%s', (name, open) => {
  let database: FreshDatabase
  let admin: pg.Pool
  let client: ToolClient
  let safe: Retrysafe<object>
  let key: string
  const opened: ToolClient[] = []

  beforeAll(async () => {
    database = await freshDatabase()
    admin = new pg.Pool({ connectionString: database.connectionString, max: 2 })
    admin.on('error', () => undefined)
    client = await another()
    const store = client.store()
    await store.migrate()
    safe = retrysafe({ store })
    await admin.query('create table effect (id serial, key text, payload text, generation bigint)')
    await admin.query('create table unique_effect (id serial, key text constraint one_each unique)')
    // Quotes the whole row: "Failing row contains (…)".
    await admin.query(`alter table retrysafe.intent add check (scope <> '${unreadable}')`)
  })

  beforeEach(() => {
    key = randomUUID()
  })

  afterAll(async () => {
    await Promise.all(opened.map((one) => one.end()))
    await admin.end()
    await database.drop()
  })

  async function another(connectionString = database.connectionString): Promise<ToolClient> {
    const more = await open(connectionString)
    opened.push(more)
    return more
  }

  async function count(table: string): Promise<number> {
    const { rows } = await admin.query(`select count(*)::int as n from ${table} where key like $1`, [
      `%${key}%`,
    ])
    return rows[0].n
  }

  const effects = () => count('effect')
  const intent = () => ({ scope: 's', key })
  const effect = () => ({ key, payload: 'p', generation: 1 })

  test('effect and key commit together, and a retry is the first answer', async () => {
    const place = () =>
      safe.transaction(intent(), async ({ tx }) => {
        await client.insert(tx, effect())
        return { placed: key }
      })
    expect(await place()).toEqual({ value: { placed: key }, replayed: false })
    expect([await effects(), await count('retrysafe.intent')]).toEqual([1, 1])
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
    expect([await effects(), await count('retrysafe.intent')]).toEqual([0, 0])
  })

  test("the work's own constraint passes through as the error of the tool, and frees the key", async () => {
    const twice = safe.transaction(intent(), async ({ tx }) => {
      await client.insert(tx, effect())
      await client.insertUnique(tx, key)
      await client.insertUnique(tx, key)
    })
    const error = await twice.catch((thrown: unknown) => thrown)
    expect((error as object).constructor.name).toBe(client.violation)
    expect([await effects(), await count('unique_effect'), await count('retrysafe.intent')]).toEqual([
      0, 0, 0,
    ])
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
    expect([await effects(), await count('retrysafe.intent')]).toEqual([0, 1])
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

  describe('through a connection that is cut', () => {
    let proxy: CuttingProxy
    let cut: ToolClient

    beforeAll(async () => {
      const url = new URL(database.connectionString)
      proxy = await cuttingProxy({ port: Number(url.port), host: url.hostname })
      url.hostname = proxy.host
      url.port = String(proxy.port)
      cut = await another(url.href)
    })

    afterAll(() => proxy.close())

    const holds =
      (text: string) =>
      (message: CutMessage): boolean =>
        message.text.includes(text)
    const save = 'insert into "retrysafe".intent'

    /** The end of the statement behind the save. Its text is not always sent, for some clients have it prepared. */
    function commits(): (message: CutMessage) => boolean {
      let executed: number | undefined
      return ({ type, text }) => {
        if (text.includes(save)) executed ??= 0
        if (executed === undefined) return false
        if (['E', 'Q'].includes(type)) executed += 1
        return executed === 2 && ['S', 'Q'].includes(type)
      }
    }

    /** One attempt that fails at the first message that is meant. */
    async function fail(at: (message: CutMessage) => boolean, act: 'cutBefore' | 'cutAfter') {
      const over = retrysafe({ store: cut.store() })
      const place = () =>
        over.transaction(intent(), async ({ tx }) => {
          await cut.insert(tx, effect())
          return 'placed'
        })
      // The second on its connection: the first opens it, and some tools ask the server this and that.
      proxy.run()
      await place()
      key = randomUUID()
      const told: { during: string; error: unknown }[] = []
      over.on('storeError', (event) => told.push(event))
      const run = proxy.run({ at, act })
      const answer = await place().catch((error: unknown) => error)
      expect(run.fired()).toBe(true)
      proxy.run()
      return { answer, told, retry: await place() }
    }

    test.each([
      ['a COMMIT', commits],
      ['the question behind a COMMIT', () => holds('and state = 3')],
    ])('%s whose answer is lost is read back', async (_what, at) => {
      const { answer, told, retry } = await fail(at(), 'cutAfter')
      expect(answer).toEqual({ value: 'placed', replayed: false })
      expect(told.map(({ during }) => during)).toEqual(['commit'])
      expect(retry).toEqual({ value: 'placed', replayed: true })
      expect(await effects()).toBe(1)
    })

    test('a save that never arrived is rolled back, and quotes no key', async () => {
      const { answer, told, retry } = await fail(holds(save), 'cutBefore')
      expect(answer).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(inspect([answer, told], { depth: 20, showHidden: true })).not.toContain(key)
      expect(retry).toEqual({ value: 'placed', replayed: false })
      expect(await effects()).toBe(1)
    })
  })

  test('work that outlasts its time in a statement ends with its time, and what it has sent is rolled back', async () => {
    const hasty = retrysafe({ store: client.store(), workTimeoutMs: 300 })
    const write = async ({ tx }: { tx: object }) => void (await client.insert(tx, effect()))
    const holder = await admin.connect()
    await holder.query('begin')
    await holder.query('lock table effect')
    await expect(hasty.transaction(intent(), write)).rejects.toMatchObject({ code: 'WORK_TIMEOUT' })
    await holder.query('rollback')
    holder.release()
    await until(() =>
      safe.transaction(intent(), write).then(
        () => true,
        () => false,
      ),
    )
    expect(await effects()).toBe(1)
    await hasty.close()
  })

  test('a server that goes away under the work ends the attempt, and not the process', async () => {
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`
    const attempt = () =>
      safe.transaction(intent(), async ({ tx, signal }) => {
        await client.insert(tx, effect())
        if (killed) return
        killed = true
        await admin.query(kill)
        // A statement that meets the end of its connection in the same moment ends the process: 3.4 writes to a socket that is gone.
        if (name.includes('postgres.js')) await until(() => signal.aborted)
        await client.insert(tx, effect())
      })
    let killed = false
    await expect(attempt()).rejects.toThrow()
    expect([await effects(), await count('retrysafe.intent')]).toEqual([0, 0])
    // Tools give the dead connection back, and find out with the next one who takes it.
    await until(() =>
      attempt().then(
        () => true,
        () => false,
      ),
    )
    expect(await effects()).toBe(1)
  })

  test.each(['transaction', 'run'] as const)('what fails in %s quotes no row of ours', async (mode) => {
    const told: unknown[] = []
    const stop = safe.on('storeError', (event) => told.push(event))
    const refused = { scope: unreadable, key }
    const error = await safe[mode](refused, () => 'done').catch((thrown: unknown) => thrown)
    stop()
    const text = inspect([error, told], { depth: 20, showHidden: true })
    expect(text).toContain('23514')
    expect(text).not.toContain(key)
    expect(text).not.toContain(unreadable)
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
    expect([await effects(), await count('retrysafe.intent')]).toEqual([0, 0])
    await client.transaction(async (tx) => {
      await write(tx)
      expect(await write(tx)).toEqual({ value: 'placed', replayed: true })
      // Ours is over, theirs is not.
      await client.insert(tx, effect())
    })
    expect([await effects(), await count('retrysafe.intent')]).toEqual([2, 1])
  })

  test('within work of ours, another intent commits with it', async () => {
    const inner = { scope: 'inner', key }
    await safe.transaction(intent(), async ({ tx }) => {
      await client.insert(tx, effect())
      await safe.within(tx, inner, ({ tx: inside }) => client.insert(inside, effect()).then(() => null))
    })
    expect([await effects(), await count('retrysafe.intent')]).toEqual([2, 2])
  })

  test('nothing is sent through tx once the attempt is over', async () => {
    let late: (() => PromiseLike<unknown>) | undefined
    let kept: object = {}
    await safe.transaction(intent(), async ({ tx }) => {
      await client.insert(tx, effect())
      late = client.build(tx, effect())
      kept = tx
    })
    await expect((async () => client.insert(kept, effect()))()).rejects.toThrow('attempt is over')
    await expect((async () => late?.())()).rejects.toThrow()
    expect(await effects()).toBe(1)
  })

  test('an answer has its effect, also where a statement that nobody has awaited fails beside it', async () => {
    await admin.query('insert into unique_effect (key) values ($1)', [key])
    const sloppy = safe.transaction(intent(), async ({ tx }) => {
      await client.insert(tx, effect())
      client.insertUnique(tx, key).catch(() => undefined)
      return 'placed'
    })
    const answer = await sloppy.catch(() => undefined)
    const kept = answer === undefined ? 0 : 1
    expect([await effects(), await count('retrysafe.intent')]).toEqual([kept, kept])
  })

  test('the test kit finds work that writes through the root client', async () => {
    const faults = planFaults()
    const faulty = retrysafe({ store: withFaults(client.store(), faults), mode: 'transaction' })
    const attempt = (work: (tx: object) => Promise<unknown>) => () =>
      faulty.transaction(intent(), ({ tx }) => work(tx).then(() => 'placed'))
    const right = attempt((tx) => client.insert(tx, effect()))
    await expectThroughTx({ faults, attempt: right, effects })
    key = randomUUID()
    const both = attempt(async (tx) => {
      await client.insert(tx, effect())
      await client.insert(undefined, effect())
    })
    await expect(expectThroughTx({ faults, attempt: both, effects })).rejects.toThrow('wrote past tx')
  })
})
