/** What the work may do through `tx`, and what it may not. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { OpenTransaction } from '../../dist/store.js'
import { controlsTransaction } from '../../dist/stores/postgres/control-words.js'
import { type Bench, beginRequest, freshKey, openBench, type Tx, wish } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
})

afterAll(() => bench.close())

async function withTx(work: (open: OpenTransaction<Tx>) => Promise<void>): Promise<void> {
  const open = await bench.store.transactions.begin(beginRequest(freshKey()))
  try {
    await work(open)
  } finally {
    await open.rollback()
  }
}

const refused = [
  'begin',
  'BEGIN WORK',
  'start transaction read only',
  'commit',
  'Commit and chain',
  'end',
  'rollback',
  'abort',
  'rollback and chain',
  "prepare transaction 'x'",
  'prepare q as select 1',
  'select 1; commit',
  '/* c /* nested */ */ commit',
  '-- c\ncommit',
  ';;  commit',
  "select ';'; commit",
  "select E'\\''; commit",
  'select $$ ; $$; commit',
  'select $a$ $b$ ; $a$; commit',
  'select ";"; commit',
  'select $1; commit',
  'create function f() returns int begin atomic select case when true then 1 end; end; commit',
  '\ufeff;commit',
]

const allowed = [
  'select 1',
  'savepoint s',
  'release savepoint s',
  'rollback to s',
  'ROLLBACK TO SAVEPOINT s',
  'rollback work to savepoint s',
  'rollback transaction to s',
  "select 'commit'",
  "select E'\\'; commit; --'",
  "select '; commit'",
  "select ''';commit'",
  'select $$; commit $$',
  'select $tag$; commit; $$ $tag$',
  'select "a; commit"',
  '-- ; commit',
  '/* ; commit */ select 1',
  'select case when true then 1 end',
  'select "begin" from (select 1 as "begin") t',
  'create function f() returns int begin atomic select case when true then 1 end; end',
  'do $$ begin perform 1; end $$',
  'select commit from (select 1 as commit) t',
  'select a$commit from t',
  '',
]

test.each(refused)('the guard refuses: %s', (text) => {
  expect(controlsTransaction(text)).toBeDefined()
})

test.each(allowed)('the guard allows: %s', (text) => {
  expect(controlsTransaction(text)).toBeUndefined()
})

test('a refused statement is not sent, in any form of query', () =>
  withTx(async ({ tx }) => {
    const aborted = { code: 'TRANSACTION_ABORTED' }
    await expect(tx.query('commit')).rejects.toMatchObject(aborted)
    await expect(tx.query({ text: 'commit' })).rejects.toMatchObject(aborted)
    await expect(tx.query('commit', [])).rejects.toMatchObject(aborted)
    const told = await new Promise((resolve) => tx.query('commit', (error) => resolve(error)))
    expect(told).toMatchObject(aborted)
    expect(() => tx.query(new pg.Query('commit'))).toThrow()
    // The transaction still stands.
    await tx.query('savepoint s')
    await tx.query('rollback to savepoint s')
  }))

test('every form of query reaches the client and comes back as it would without us', () =>
  withTx(async ({ tx }) => {
    expect((await tx.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    expect((await tx.query('select $1::int as n', [2])).rows).toEqual([{ n: 2 }])
    expect((await tx.query({ text: 'select $1::int as n', values: [3] })).rows).toEqual([{ n: 3 }])
    expect((await tx.query({ text: 'select 4', rowMode: 'array' })).rows).toEqual([[4]])
    const byCallback = await new Promise((resolve) =>
      tx.query('select $1::int as n', [5], (_error, result) => resolve(result.rows)),
    )
    expect(byCallback).toEqual([{ n: 5 }])
    const rows: unknown[] = []
    const submitted = new pg.Query('select generate_series(1, 3) as n')
    expect(tx.query(submitted)).toBe(submitted)
    submitted.on('row', (row) => rows.push(row))
    await new Promise((resolve) => submitted.on('end', resolve))
    expect(rows).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    await expect(tx.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
  }))

test('once the attempt has settled every use throws and nothing is sent', async () => {
  const key = freshKey()
  const open = await bench.store.transactions.begin(beginRequest(key))
  const { tx } = open
  await open.settle()
  const settled = { code: 'ATTEMPT_SETTLED' }
  const insert = `insert into effect values ('${key}')`
  await expect(tx.query(insert)).rejects.toMatchObject(settled)
  expect(await new Promise((resolve) => tx.query(insert, (error) => resolve(error)))).toMatchObject(settled)
  expect(() => tx.query(new pg.Query(insert))).toThrow()
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  expect(await bench.effects(key)).toBe(0)
})

test('settling waits for statements in every form', async () => {
  const open = await bench.store.transactions.begin(beginRequest(freshKey()))
  const answers: string[] = []
  const sleep = 'select pg_sleep(0.02)'
  const promised = open.tx.query(sleep).then(() => answers.push('promise'))
  open.tx.query(sleep, () => answers.push('callback'))
  const submitted = new pg.Query(sleep)
  submitted.on('end', () => answers.push('submittable'))
  open.tx.query(submitted)
  await open.settle()
  await promised
  expect(answers.sort()).toEqual(['callback', 'promise', 'submittable'])
  await open.rollback()
})

/** The protocol of pg-cursor in a few lines: a portal stays open, and its client busy, until it is closed. */
function openCursor(text: string) {
  let connection: pg.Connection | undefined
  const rows: unknown[] = []
  const ignore = () => {}
  return {
    text,
    rows,
    submit(submitted: pg.Connection) {
      connection = submitted
      submitted.parse({ name: '', text, types: [] }, true)
      submitted.bind({ values: [] }, true)
      submitted.execute({ rows: '1' }, true)
      submitted.flush()
    },
    close() {
      connection?.sync()
    },
    handleDataRow: (message: { fields: unknown[] }) => rows.push(message.fields),
    handleRowDescription: ignore,
    handlePortalSuspended: ignore,
    handleCommandComplete: ignore,
    handleReadyForQuery: ignore,
    handleError: ignore,
  }
}

test('a cursor that the work left open is closed before the save, also behind a slow statement', async () => {
  for (const before of ['select 1', 'select pg_sleep(0.1)']) {
    const open = await bench.store.transactions.begin(beginRequest(freshKey()))
    const slow = open.tx.query(before)
    const cursor = open.tx.query(openCursor('select generate_series(1, 3)'))
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    expect(cursor.rows).toEqual([['1']])
    await slow
  }
})

test('work that never used tx is known', () =>
  withTx(async (open) => {
    expect(open.used()).toBe(false)
    await open.tx.query('select 1')
    expect(open.used()).toBe(true)
  }))
