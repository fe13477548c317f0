/** PGlite's types as we restate them, and how the `tx` of any other tool is typed. */
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { type Pglite, type PgliteTx, type PostgresTool, postgres } from 'retrysafe/postgres'
import { expectTypeOf, test } from 'vitest'

interface OwnTx {
  readonly insert: (row: object) => Promise<void>
}

test('a PGlite fits what the store asks for, and gives its own Transaction', () => {
  expectTypeOf<PGlite>().toExtend<Pglite>()
  expectTypeOf<PgliteTx<PGlite>>().toEqualTypeOf<Transaction>()
  const use = (db: PGlite) => postgres(db).transactions.begin
  expectTypeOf<Awaited<ReturnType<ReturnType<typeof use>>>['tx']>().toEqualTypeOf<Transaction>()
})

test("a tool's tx is typed by its query", () => {
  const use = (orm: PostgresTool<OwnTx>) => {
    const store = postgres({
      transaction: (work) => orm.transaction(work),
      query: (tx: OwnTx | undefined, text: string) => orm.query(tx, text),
    })
    return store.transactions.begin
  }
  expectTypeOf<Awaited<ReturnType<ReturnType<typeof use>>>['tx']>().toEqualTypeOf<OwnTx>()
})
