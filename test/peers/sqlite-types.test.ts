/** Our restatement of better-sqlite3's and `node:sqlite`'s types, held against the real ones: drift fails this build, not the user's. */
/// <reference path="./node_modules/@types/node/sqlite.d.ts" />
import type { DatabaseSync } from 'node:sqlite'
import type Database from 'better-sqlite3'
import { expectTypeOf, test } from 'vitest'
import { type BetterSqlite3, type NodeSqlite, sqlite } from '../processes/own-sqlite.js'

test('a connection of each driver fits what the store asks for', () => {
  expectTypeOf<Database.Database>().toExtend<BetterSqlite3>()
  expectTypeOf<DatabaseSync>().toExtend<NodeSqlite>()
})

test("the work's tx is the driver's own connection, with its types", () => {
  const use = async (db: Database.Database, own: DatabaseSync) => {
    const owned = { identity: { key: 'k', scope: 's' }, owner: 'o' }
    const shared = await sqlite(db).transactions.open(owned, 1)
    expectTypeOf(shared.tx).toEqualTypeOf<Database.Database>()
    const opened = await sqlite({ open: () => db }).transactions.open(owned, 1)
    expectTypeOf(opened.tx).toEqualTypeOf<Database.Database>()
    const row = opened.tx.prepare<[string], { id: number }>('select id from orders where id = ?').get('1')
    expectTypeOf(row).toEqualTypeOf<{ id: number } | undefined>()
    const node = await sqlite(own).transactions.open(owned, 1)
    expectTypeOf(node.tx).toEqualTypeOf<DatabaseSync>()
    const nodes = await sqlite({ open: () => own }, { durable: false }).transactions.open(owned, 1)
    expectTypeOf(nodes.tx).toEqualTypeOf<DatabaseSync>()
    expectTypeOf(db).toExtend<
      Parameters<ReturnType<typeof sqlite<Database.Database>>['transactions']['within']>[0]
    >()
  }
  expectTypeOf(use).toBeFunction()
})

test('what is no connection does not compile', () => {
  const use = (statement: Database.Statement) => {
    // @ts-expect-error a statement is no connection
    sqlite(statement)
    // @ts-expect-error open() must give one at once
    sqlite({ open: async () => ({}) as Database.Database })
  }
  expectTypeOf(use).toBeFunction()
})
