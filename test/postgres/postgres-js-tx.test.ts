/** What the work writes through over postgres.js: its own `sql`, minus transaction control, until the attempt has settled. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { OpenTransaction } from '../../dist/store.js'
import { type Bench, beginRequest, freshKey, openBench, wish } from './harness.js'
import { closeAllSql, expectWholePool, openSql, type SqlStore, type SqlTx } from './postgres-js-harness.js'

let bench: Bench
let over: SqlStore
let open: OpenTransaction<SqlTx>
let key: string

beforeAll(async () => {
  bench = await openBench()
  over = openSql(bench, { max: 2 })
})

beforeEach(async () => {
  key = freshKey()
  open = await over.store.transactions.begin(beginRequest(key))
})

afterEach(async () => {
  await open.rollback()
  await expectWholePool(over.sql)
})

afterAll(async () => {
  await closeAllSql()
  await bench.close()
})

describe('what postgres.js has, the work has', () => {
  test('templates, helpers, unsafe, values, raw, forEach, describe, simple', async () => {
    const { tx } = open
    await tx`insert into effect ${tx([
      { key, note: 'a' },
      { key, note: 'b' },
    ])}`
    await tx`update effect set ${tx({ note: 'c' })} where key = ${key} and note = any(${tx.array(['b'])})`
    const part = tx`where key = ${key}`
    expect(await tx`select note from effect ${part} order by 1`).toMatchObject([{ note: 'a' }, { note: 'c' }])
    expect(await tx.unsafe('select note from effect where key = $1 order by 1', [key]).values()).toEqual([
      ['a'],
      ['c'],
    ])
    expect((await tx`select 'x' as x`.raw())[0]).toEqual([Buffer.from('x')])
    const notes: string[] = []
    await tx`select note from effect ${part} order by 1`.forEach(({ note }) => {
      notes.push(note)
    })
    expect(notes).toEqual(['a', 'c'])
    expect((await tx`select ${1}::int as one`.describe()).columns).toMatchObject([{ name: 'one' }])
    expect(await tx`select 1 as one; select 2 as two`.simple()).toMatchObject([[{ one: 1 }], [{ two: 2 }]])
    expect(await tx`select ${tx.json({ a: 1 })}::jsonb as json`).toMatchObject([{ json: { a: 1 } }])
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(2)
  })

  test('cursors of both kinds', async () => {
    const { tx } = open
    const seen: number[] = []
    for await (const rows of tx`select n from generate_series(1, 5) n`.cursor(2))
      seen.push(...rows.map(({ n }) => n))
    await tx`select n from generate_series(6, 9) n`.cursor(2, (rows) => {
      seen.push(...rows.map(({ n }) => n))
    })
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('COPY in and out', async () => {
    const { tx } = open
    const into: Writable = await tx`copy effect (key, note) from stdin`.writable()
    await new Promise<void>((done) => into.end(`${key}\tcopied\n`, done))
    const out: Readable =
      await tx`copy (select note from effect where key = '${tx.unsafe(key)}') to stdout`.readable()
    expect(await text(out)).toBe('copied\n')
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
  })

  test('files, in the transaction', async () => {
    const path = join(tmpdir(), `${key}.sql`)
    writeFileSync(path, 'insert into effect (key) values ($1)')
    await open.tx.file(path, [key])
    expect(await bench.effects(key)).toBe(0)
    await expect(open.tx.file(`${path}.none`, [key])).rejects.toMatchObject({ code: 'ENOENT' })
    writeFileSync(path, 'commit')
    await expect(open.tx.file(path)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    await open.rollback()
    expect(await bench.effects(key)).toBe(0)
  })

  test('a notification goes out with the COMMIT, and not without', async () => {
    const heard: string[] = []
    const { unlisten } = await over.sql.listen('told', (payload) => heard.push(payload))
    await open.tx.notify('told', 'rolled back')
    await open.rollback()
    const next = await over.store.transactions.begin(beginRequest(freshKey()))
    await next.tx.notify('told', 'committed')
    await next.save(wish)
    await over.sql.notify('told', 'after')
    while (!heard.includes('after')) await new Promise((resume) => setImmediate(resume))
    expect(heard).toEqual(['committed', 'after'])
    await unlisten()
  })
})

describe('savepoints', () => {
  test('what fails in one is rolled back to it, and the attempt goes on', async () => {
    const { tx } = open
    await tx`insert into effect (key) values (${key})`
    const failing = tx.savepoint(async (inner) => {
      await inner`insert into effect (key) values (${key})`
      await inner`select 1 / 0`
    })
    await expect(failing).rejects.toMatchObject({ code: '22012' })
    const value = await tx.savepoint('a "named" one', async (inner) => {
      await inner`insert into effect (key) values (${key})`
      await expect(inner.savepoint((deep) => [deep`select 1`, deep`select nothing`])).rejects.toThrow(
        'nothing',
      )
      return 'kept'
    })
    expect(value).toBe('kept')
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(2)
  })

  test('an error that was dealt with inside fails it all the same, as in postgres.js', async () => {
    const swallowing = open.tx.savepoint(async (inner) => {
      await inner`select 1 / 0`.catch(() => undefined)
      return 'kept'
    })
    await expect(swallowing).rejects.toMatchObject({ code: '22012' })
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
  })
})

describe('what would end the transaction is refused where it stands', () => {
  test.each([
    ['a template', (tx: SqlTx) => tx`commit`],
    ['unsafe', (tx: SqlTx) => tx.unsafe('select 1; rollback')],
    ['a part of a template', (tx: SqlTx) => tx`select 1 ${tx`; commit`}`],
    ['parts of a template', (tx: SqlTx) => tx`${[tx`select 1;`, tx`end`]}`],
    ['a statement in a savepoint', (tx: SqlTx) => tx.savepoint((inner) => inner`commit`)],
    ['PREPARE TRANSACTION', (tx: SqlTx) => tx.prepare('two')],
  ])('%s', async (_name, use) => {
    await expect(use(open.tx)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
  })

  test('words of it in values and texts are none', async () => {
    await open.tx`select ${'commit'} as value, 'rollback' as text, ${open.tx('key')} from effect`
    await open.tx.savepoint((inner) => inner`select 'end'`)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
  })
})

describe('tx dies with the attempt', () => {
  test('a query that was made and never awaited is not sent', async () => {
    const late = open.tx`insert into effect (key) values (${key})`
    await open.save(wish)
    await expect(late).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
    await expect(open.tx.unsafe('select 1')).rejects.toMatchObject({ code: 'ATTEMPT_SETTLED' })
    await expect(open.tx.savepoint((inner) => inner`select 1`)).rejects.toMatchObject({
      code: 'ATTEMPT_SETTLED',
    })
    expect(await bench.effects(key)).toBe(0)
  })

  test('statements in flight are awaited', async () => {
    let answered = false
    const slow = open.tx`select pg_sleep(0.1)`.then(() => {
      answered = true
    })
    // A query is sent one turn after it is awaited.
    await new Promise((resume) => setImmediate(resume))
    await open.rollback()
    expect(answered).toBe(true)
    await slow
  })

  test('a cursor that nobody reads on is closed', async () => {
    const steps = open.tx`select n from generate_series(1, 1000) n`.cursor(10)[Symbol.asyncIterator]()
    expect((await steps.next()).done).toBe(false)
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
  })

  test('a COPY that nobody goes on with is ended', async () => {
    const into = await open.tx`copy effect (key) from stdin`.writable()
    into.on('error', () => undefined)
    into.write(`${key}\n`)
    expect(await open.save(wish)).toMatchObject({ kind: 'aborted' })
    const next = await over.store.transactions.begin(beginRequest(freshKey()))
    await next.tx`copy (select repeat('x', 100) from generate_series(1, 100000)) to stdout`.readable()
    expect(await next.save(wish)).toEqual({ kind: 'committed' })
    expect(await bench.effects(key)).toBe(0)
  })
})

test('whether tx was used is known: a query that was never sent is no use', async () => {
  void open.tx`select 1`
  expect(open.used()).toBe(false)
  await open.tx`select 1`
  expect(open.used()).toBe(true)
})

test('an error that the work swallowed aborts the save, and the outcome can still be saved alone', async () => {
  await open.tx`insert into effect (key) values (${key})`
  await open.tx`select 1 / 0`.catch(() => undefined)
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted', error: { code: '25P02' } })
  expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
  expect(await bench.effects(key)).toBe(0)
})

test('a value that cannot be sent, behind a statement that runs, costs the attempt and not the answer', async () => {
  const nothing = undefined as unknown as string
  // Prepared, so that the next ones are sent behind each other.
  await open.tx`insert into effect (key) values (${key})`
  const both = Promise.all([
    open.tx`insert into effect (key) values (${key})`,
    open.tx`insert into effect (key) values (${nothing})`,
  ])
  await expect(both).rejects.toThrow()
  expect(await open.save(wish)).toMatchObject({ kind: 'rolledBack' })
  await open.rollback()
  expect(await bench.effects(key)).toBe(0)
})
