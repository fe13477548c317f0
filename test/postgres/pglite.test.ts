/** PGlite: one connection in the process, where everything waits its turn. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite, type Transaction } from '@electric-sql/pglite'
import { retrysafe } from 'retrysafe'
import { type PostgresStore, postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { beginRequest, claimRequest, freshKey, wish } from './harness.js'

let db: PGlite
let store: PostgresStore<Transaction>

beforeAll(async () => {
  db = await PGlite.create()
  store = postgres(db)
  await store.migrate()
  await db.query('create table effect (key text)')
})

afterAll(() => db.close())

const insert = 'insert into effect (key) values ($1)'

async function effects(key: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>('select count(*)::int as n from effect where key = $1', [
    key,
  ])
  return rows[0]?.n ?? 0
}

test('claim, effect and outcome commit together, and roll back together', async () => {
  const [kept, undone] = [freshKey(), freshKey()]
  const open = await store.transactions.begin(beginRequest(kept))
  await open.tx.query(insert, [kept])
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  const other = await store.transactions.begin(beginRequest(undone))
  await other.tx.query(insert, [undone])
  await other.rollback()
  expect([await effects(kept), await effects(undone)]).toEqual([1, 0])
  expect(await store.find({ key: kept, scope: 'tenant' }, Date.now())).toMatchObject({ state: 'done' })
  expect(await store.find({ key: undone, scope: 'tenant' }, Date.now())).toBeUndefined()
})

test('of many attempts at once on one key exactly one takes effect', async () => {
  const safe = retrysafe({ store, whileRunning: { waitMs: 5000 } })
  const key = freshKey()
  const attempts = Array.from({ length: 50 }, () =>
    safe.transaction({ scope: 's', key }, async ({ tx }) => {
      await tx.query(insert, [key])
    }),
  )
  await Promise.all(attempts)
  expect(await effects(key)).toBe(1)
})

test('a swallowed error aborts the save, and the outcome can still be saved alone', async () => {
  const key = freshKey()
  const open = await store.transactions.begin(beginRequest(key))
  await open.tx.query(insert, [key])
  await open.tx.query('select 1 / 0').catch(() => undefined)
  expect(await open.save(wish)).toMatchObject({ kind: 'aborted', error: { code: '25P02' } })
  expect(await open.save({ ...wish, undoWork: true })).toEqual({ kind: 'committed' })
  expect(await effects(key)).toBe(0)
})

test("a claim inside the caller's own transaction is true with it", async () => {
  const key = freshKey()
  await db.transaction(async (own) => {
    const open = await store.transactions.within(own, beginRequest(key))
    await open.tx.query(insert, [key])
    expect(await open.save(wish)).toEqual({ kind: 'committed' })
    await own.query(insert, [key])
  })
  expect(await effects(key)).toBe(2)
})

test('what is asked from inside the work gives up in time, and nothing stands still afterwards', async () => {
  const hasty = postgres(db, { answerTimeoutMs: 50 })
  const key = freshKey()
  const open = await hasty.transactions.begin(beginRequest(key))
  await expect(hasty.claim(claimRequest(freshKey()))).rejects.toThrow('within 50 ms')
  await expect(hasty.transactions.begin(beginRequest(freshKey()))).rejects.toThrow('within 50 ms')
  await open.tx.query(insert, [key])
  expect(await open.save(wish)).toEqual({ kind: 'committed' })
  const next = await store.transactions.begin(beginRequest(freshKey()))
  await next.rollback()
  expect(await effects(key)).toBe(1)
})

test('it survives what its file system survives', async () => {
  expect(store.guarantees.survivesCrash).toBe(false)
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-pglite-'))
  const onDisk = await PGlite.create(join(folder, 'data'))
  expect(postgres(onDisk).guarantees.survivesCrash).toBe(true)
  await onDisk.close()
  rmSync(folder, { recursive: true })
})

test('its settings are looked at on the one connection, and it owns up to having no disk', async () => {
  const findings = await store.inspecting.inspect()
  expect(findings.find(({ id }) => id === 'unique-index')).toMatchObject({ level: 'ok' })
  expect(findings.filter(({ level }) => level === 'error').map(({ id }) => id)).toEqual(['fsync'])
})
