/** The types of the tools as we restate them, held against the real ones: drift fails this build, not the user's. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodePgDatabase, NodePgTransaction } from 'drizzle-orm/node-postgres'
import type { PostgresJsDatabase, PostgresJsTransaction } from 'drizzle-orm/postgres-js'
import type { Knex } from 'knex'
import type { Kysely, Transaction } from 'kysely'
import type { DataSource, EntityManager } from 'typeorm'
import { expect, expectTypeOf, test } from 'vitest'
import {
  type DrizzleDb,
  type KnexDb,
  type KyselyDb,
  type PostgresTx,
  postgres,
  type TypeormDataSource,
} from '../../dist/stores/postgres.js'
import { folder } from './processes/peer.js'
import { generatePrisma } from './processes/tools/prisma.js'

interface Tables {
  readonly orders: { readonly id: number; readonly total: number }
}

/** The `tx` that the work is given over a handle. */
type Given<Handle> = PostgresTx<Handle>

test('a database of Drizzle gives the transaction of its driver, with its schema', () => {
  expectTypeOf<NodePgDatabase>().toExtend<DrizzleDb>()
  expectTypeOf<PostgresJsDatabase>().toExtend<DrizzleDb>()
  const overPool = (db: NodePgDatabase) =>
    db.transaction(async (tx) => expectTypeOf(tx).toExtend<Given<NodePgDatabase>>())
  const overSql = (db: PostgresJsDatabase) =>
    db.transaction(async (tx) => expectTypeOf(tx).toExtend<Given<PostgresJsDatabase>>())
  expectTypeOf<[typeof overPool, typeof overSql]>().not.toBeAny()
  expectTypeOf<NodePgTransaction<Record<string, never>, Record<string, never>>>().toExtend<
    Given<NodePgDatabase>
  >()
  expectTypeOf<PostgresJsTransaction<Record<string, never>, Record<string, never>>>().toExtend<
    Given<PostgresJsDatabase>
  >()
  expectTypeOf<Given<NodePgDatabase>['insert']>().toEqualTypeOf<NodePgDatabase['insert']>()
})

test('a Kysely gives its Transaction, with its tables', () => {
  expectTypeOf<Kysely<Tables>>().toExtend<KyselyDb>()
  expectTypeOf<Given<Kysely<Tables>>>().toEqualTypeOf<Transaction<Tables>>()
})

test('a Knex gives its Transaction', () => {
  expectTypeOf<Knex>().toExtend<KnexDb>()
  expectTypeOf<Given<Knex>>().toEqualTypeOf<Knex.Transaction>()
})

test('a DataSource of TypeORM gives an EntityManager', () => {
  expectTypeOf<DataSource>().toExtend<TypeormDataSource>()
  expectTypeOf<Given<DataSource>>().toEqualTypeOf<EntityManager>()
})

test('what is inside a transaction already is no handle', () => {
  const use = (manager: EntityManager) => {
    // @ts-expect-error a manager is no DataSource
    postgres(manager)
  }
  expectTypeOf(use).toBeFunction()
})

/** Compiled here, because there are no types before the client is generated. */
const overPrisma = `
import type { Prisma, PrismaClient } from '@prisma/client'
import { postgres, type PostgresTx, type PrismaDb } from '${join(folder, '../../dist/stores/postgres.js')}'

type Same<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false
const fits: PrismaClient extends PrismaDb ? true : false = true
const same: Same<PostgresTx<PrismaClient>, Prisma.TransactionClient> = true

export async function use(prisma: PrismaClient) {
  const { tx } = await postgres(prisma).transactions.open({ identity: { key: 'k', scope: 's' }, owner: 'o' }, 1)
  await tx.effect.create({ data: { key: 'k', payload: 'p', generation: 1n } })
  // @ts-expect-error there is no such member
  await tx.effect.create({ data: { kye: 'k' } })
  // @ts-expect-error a transaction is no client
  postgres(tx)
  const extended = prisma.$extends({ model: { effect: { async latest() { return 7 } } } })
  const open = await postgres(extended).transactions.open({ identity: { key: 'k', scope: 's' }, owner: 'o' }, 1)
  const seven: number = await open.tx.effect.latest()
  return [fits, same, seven]
}
`

test('a PrismaClient gives its own TransactionClient, with models and extensions', () => {
  generatePrisma()
  const place = join(folder, `node_modules/.types-${process.pid}`)
  mkdirSync(place)
  try {
    writeFileSync(join(place, 'prisma.ts'), overPrisma)
    const config = { extends: join(folder, '../../tsconfig.base.json'), compilerOptions: { noEmit: true } }
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ ...config, files: ['prisma.ts'] }))
    const tsc = join(folder, '../../node_modules/typescript/bin/tsc')
    expect(complaintsOf(tsc, place)).toBe('')
  } finally {
    rmSync(place, { recursive: true })
  }
})

function complaintsOf(tsc: string, place: string): string {
  try {
    execFileSync(process.execPath, [tsc, '-p', place], { encoding: 'utf8' })
    return ''
  } catch (error) {
    return (error as { readonly stdout: string }).stdout
  }
}
