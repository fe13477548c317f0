/** Our restatement of node-postgres' types, held against the real ones: drift fails this build, not the user's. */
import type pg from 'pg'
import { type PgPool, type PgPoolClient, postgres } from 'retrysafe/postgres'
import { expectTypeOf, test } from 'vitest'

test('a Pool and a PoolClient of node-postgres fit what the store asks for', () => {
  expectTypeOf<pg.Pool>().toExtend<PgPool>()
  expectTypeOf<pg.PoolClient>().toExtend<PgPoolClient>()
})

test("the work's tx has the overloads of the pool that was passed in", () => {
  const use = async (pool: pg.Pool) => {
    const store = postgres(pool)
    type Tx = Awaited<ReturnType<typeof store.transactions.begin>>['tx']
    expectTypeOf<Tx['query']>().toEqualTypeOf<pg.Pool['query']>()
    expectTypeOf<pg.PoolClient>().toExtend<Parameters<typeof store.transactions.within>[0]>()
    const { tx } = await store.transactions.open({ identity: { key: 'k', scope: 's' }, owner: 'o' }, 1)
    const { rows } = await tx.query<{ id: number }>('select 1 as id')
    expectTypeOf(rows).toEqualTypeOf<{ id: number }[]>()
  }
  expectTypeOf(use).toBeFunction()
})

test('what is no pool does not compile', () => {
  const use = (client: pg.Client) => {
    // @ts-expect-error a Client is no Pool
    postgres(client)
    // @ts-expect-error not one of the levels
    postgres({} as pg.Pool, { isolation: 'read uncommitted' })
  }
  expectTypeOf(use).toBeFunction()
})
