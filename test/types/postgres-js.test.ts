/** Our restatement of postgres.js' types, held against the real ones: drift fails this build, not the user's. */
import type postgresJs from 'postgres'
import { type PostgresJs, type PostgresJsTx, postgres } from 'retrysafe/postgres'
import { expectTypeOf, test } from 'vitest'

type Plain = postgresJs.Sql
type Typed = postgresJs.Sql<{ big: bigint; point: { x: number; y: number } }>

test('a client of postgres.js fits what the store asks for', () => {
  expectTypeOf<Plain>().toExtend<PostgresJs>()
  expectTypeOf<Typed>().toExtend<PostgresJs>()
})

test("the work's tx is the client's own TransactionSql, with its types", () => {
  expectTypeOf<PostgresJsTx<Plain>>().toEqualTypeOf<postgresJs.TransactionSql>()
  expectTypeOf<PostgresJsTx<Typed>>().toEqualTypeOf<
    postgresJs.TransactionSql<{ big: bigint; point: { x: number; y: number } }>
  >()
  const use = async (sql: Typed) => {
    const store = postgres(sql)
    const { tx } = await store.transactions.open({ identity: { key: 'k', scope: 's' }, owner: 'o' }, 1)
    const rows = await tx<{ id: number }[]>`select ${tx.typed.big(1n)} as id`
    expectTypeOf(rows[0]).toEqualTypeOf<{ id: number } | undefined>()
    await sql.begin(async (own) => {
      expectTypeOf(own).toExtend<Parameters<typeof store.transactions.within>[0]>()
    })
  }
  expectTypeOf(use).toBeFunction()
})

test('what is no client does not compile', () => {
  const use = (tx: postgresJs.TransactionSql) => {
    // @ts-expect-error a transaction is no client
    postgres(tx)
  }
  expectTypeOf(use).toBeFunction()
})
