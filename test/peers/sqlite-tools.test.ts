/** What the tools on SQLite must keep: Drizzle by its own transaction, others over `tx`; and what cannot keep it is refused (rule 37). */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import makeKnex from 'knex'
import { Kysely, SqliteDialect } from 'kysely'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest'
import { type Retrysafe, retrysafe } from '../../dist/index.js'
import { type SqliteDrizzle, type SqliteTx, sqlite } from '../../dist/stores/sqlite.js'
import { expectOnce } from '../../dist/testing/index.js'
import {
  connect,
  type Db,
  effects as effectTable,
  storeOver,
  uniques,
} from './processes/sqlite-drizzle-store.js'

type Tx = SqliteTx<Db>

const folder = mkdtempSync(join(tmpdir(), 'retrysafe-sqlite-tools-'))
const file = join(folder, 'records.db')
let outside: Database.Database
let key: string

beforeAll(async () => {
  outside = new Database(file)
  outside.pragma('journal_mode = wal')
  outside.exec('create table effect (key text, payload text, generation integer)')
  outside.exec('create table unique_effect (key text unique)')
  const { store, close } = storeOver({ file })
  await store.migrate()
  await close()
})

beforeEach(() => {
  key = randomUUID()
})

afterAll(() => {
  outside.close()
  rmSync(folder, { recursive: true })
})

const count = (table: string) =>
  (outside.prepare(`select count(*) as n from ${table} where key = ?`).get(key) as { n: number }).n
const effects = async () => count('effect')
const both = () => [count('effect'), count('retrysafe_intent')]
const intent = () => ({ scope: 's', key })
const effect = () => ({ key, payload: 'p', generation: 1 })

test("the type of tx is the one of Drizzle's own transaction, with its schema", () => {
  expectTypeOf<Db>().toExtend<SqliteDrizzle>()
  const use = (db: Db) => db.transaction((tx) => expectTypeOf(tx).toEqualTypeOf<Tx>())
  expectTypeOf(use).toBeFunction()
  expectTypeOf<Tx['insert']>().toEqualTypeOf<Db['insert']>()
})

describe.each([{ shared: false }, { shared: true }])('Drizzle, shared: $shared', ({ shared }) => {
  let safe: Retrysafe<Tx>
  let opened: ReturnType<typeof storeOver>

  beforeAll(() => {
    opened = storeOver({ file, shared })
    safe = retrysafe({ store: opened.store })
  })

  afterAll(() => opened.close())

  test('effect and key commit together, and a retry is the first answer', async () => {
    const place = () =>
      safe.transaction(intent(), async ({ tx }) => {
        await tx.insert(effectTable).values(effect())
        return { read: tx.select().from(effectTable).all().at(-1)?.key }
      })
    expect(await place()).toEqual({ value: { read: key }, replayed: false })
    expect(both()).toEqual([1, 1])
    expect(await place()).toEqual({ value: { read: key }, replayed: true })
    expect(both()).toEqual([1, 1])
  })

  test('a throw leaves neither the effect nor the key, and is what the caller gets', async () => {
    const mistake = new Error('the work has failed')
    const failing = safe.transaction(intent(), ({ tx }) => {
      tx.insert(effectTable).values(effect()).run()
      throw mistake
    })
    expect(await failing.catch((error: unknown) => error)).toBe(mistake)
    expect(both()).toEqual([0, 0])
  })

  test("the work's own constraint passes through as it was raised, and frees the key", async () => {
    const twice = safe.transaction(intent(), ({ tx }) => {
      tx.insert(effectTable).values(effect()).run()
      tx.insert(uniques).values({ key }).run()
      tx.insert(uniques).values({ key }).run()
    })
    await expect(twice).rejects.toMatchObject({ code: 'SQLITE_CONSTRAINT_UNIQUE' })
    expect([...both(), count('unique_effect')]).toEqual([0, 0, 0])
  })

  test('a kept failure rolls the work back and is the answer to a retry', async () => {
    const attempt = () =>
      safe.transaction(intent(), ({ tx, keepFailure }) => {
        tx.insert(effectTable).values(effect()).run()
        keepFailure()
        throw new Error('past the point of no return')
      })
    await expect(attempt()).rejects.toThrow('past the point of no return')
    await expect(attempt()).rejects.toThrow()
    expect(both()).toEqual([0, 1])
  })

  test('five at once are one effect, over two stores of the file too', async () => {
    const rival = storeOver({ file })
    const other = retrysafe({ store: rival.store })
    let turn = 0
    const attempt = () => {
      turn += 1
      return (turn % 2 === 0 ? safe : other).transaction(intent(), ({ tx }) => {
        tx.insert(effectTable).values(effect()).run()
        return 'placed'
      })
    }
    await expectOnce({ attempt, effects, safe, sequential: true })
    await rival.close()
  })

  test("the tool's own savepoint is rolled back alone", async () => {
    await safe.transaction(intent(), ({ tx }) => {
      tx.insert(effectTable).values(effect()).run()
      const failing = () =>
        tx.transaction((inner) => {
          inner.insert(effectTable).values(effect()).run()
          throw new Error('only this')
        })
      expect(failing).toThrow('only this')
      tx.transaction((inner) => inner.insert(effectTable).values(effect()).run())
    })
    expect(await effects()).toBe(2)
  })

  test('COMMIT in the work is refused at its line', async () => {
    const attempt = safe.transaction(intent(), ({ tx }) => void tx.run('commit'))
    // Drizzle wraps what a raw statement of its user fails with.
    await expect(attempt).rejects.toMatchObject({ cause: { code: 'TRANSACTION_ABORTED' } })
    expect(both()).toEqual([0, 0])
  })

  test('nothing is sent through tx once the attempt is over, not even what was built in it', async () => {
    const late: (() => unknown)[] = []
    await safe.transaction(intent(), ({ tx }) => {
      const built = tx.insert(effectTable).values(effect())
      const prepared = tx.insert(effectTable).values(effect()).prepare()
      late.push(
        () => built.run(),
        () => prepared.run(),
        () => tx.insert(effectTable).values(effect()).run(),
        () => tx.select().from(effectTable).all(),
      )
      tx.insert(effectTable).values(effect()).run()
    })
    for (const send of late) expect(send).toThrow('attempt is over')
    expect(await effects()).toBe(1)
  })

  test('within work of ours, another intent commits with it', async () => {
    const inner = { scope: 'inner', key }
    await safe.transaction(intent(), async ({ tx }) => {
      tx.insert(effectTable).values(effect()).run()
      await safe.within(tx, inner, ({ tx: inside }) => void inside.insert(effectTable).values(effect()).run())
    })
    expect(both()).toEqual([2, 2])
  })

  test('work that never used tx is an outcome all the same', async () => {
    await safe.transaction(intent(), () => 'placed')
    expect(both()).toEqual([0, 1])
  })
})

test('on a shared connection a write through the root database is in the transaction too, and falls with it', async () => {
  const db = connect(file)
  const safe = retrysafe({ store: sqlite(db) })
  const failing = safe.transaction(intent(), ({ tx }) => {
    tx.insert(effectTable).values(effect()).run()
    db.insert(effectTable).values(effect()).run()
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  expect(both()).toEqual([0, 0])
  const waiting = safe.transaction(intent(), async ({ tx }) => {
    tx.insert(effectTable).values(effect()).run()
    await new Promise((resume) => setImmediate(resume))
  })
  await expect(waiting).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
  expect(both()).toEqual([0, 0])
  db.$client.close()
})

describe('over tx of { open }', () => {
  const store = sqlite({ open: () => new Database(file) })
  const safe = retrysafe({ store })

  afterAll(() => store.close())

  test('a Kysely that is made over tx writes in the transaction, and dies with it', async () => {
    let late: Kysely<{ effect: ReturnType<typeof effect> }> | undefined
    const attempt = (fail: boolean) =>
      safe.transaction(intent(), async ({ tx }) => {
        const db = new Kysely<{ effect: ReturnType<typeof effect> }>({
          dialect: new SqliteDialect({ database: tx }),
        })
        late = db
        await db.insertInto('effect').values(effect()).execute()
        if (fail) throw new Error('rolled back')
        return db.selectFrom('effect').select('key').where('key', '=', key).executeTakeFirst()
      })
    await expect(attempt(true)).rejects.toThrow('rolled back')
    expect(both()).toEqual([0, 0])
    expect(await attempt(false)).toEqual({ value: { key }, replayed: false })
    expect(await attempt(false)).toEqual({ value: { key }, replayed: true })
    await expect(late?.insertInto('effect').values(effect()).execute()).rejects.toThrow('attempt is over')
    expect(both()).toEqual([1, 1])
  })

  test('a statement that Knex has built is run on tx', async () => {
    const knex = makeKnex({ client: 'better-sqlite3', useNullAsDefault: true })
    await safe.transaction(intent(), ({ tx }) => {
      const { sql, bindings } = knex('effect').insert(effect()).toSQL().toNative()
      tx.prepare(sql).run(...bindings)
    })
    expect(both()).toEqual([1, 1])
    await knex.destroy()
  })
})

test.each([
  ['Kysely', () => new Kysely({ dialect: new SqliteDialect({ database: outside }) })],
  ['Knex', () => makeKnex({ client: 'better-sqlite3', useNullAsDefault: true })],
  ['TypeORM', () => new DataSource({ type: 'better-sqlite3', database: file })],
])('a handle of %s is refused, and what to pass instead is said', (name, make) => {
  const handle = make() as unknown as Database.Database
  expect(() => sqlite(handle)).toThrow(name)
  expect(() => sqlite(handle)).toThrow('{ open }')
})
