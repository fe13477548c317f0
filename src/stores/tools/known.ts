/** The tools whose own transaction a store can use, told by their shape and never by importing them. */
import { type DrizzleDb, type DrizzleTx, drizzle } from './drizzle.js'
import { type KnexDb, type KnexTx, knex } from './knex.js'
import { type KyselyDb, type KyselyTx, kysely } from './kysely.js'
import { type PrismaDb, type PrismaTx, prisma } from './prisma.js'
import { hasFunctions, type KnownTool } from './tool.js'
import { type TypeormDataSource, type TypeormTx, typeorm } from './typeorm.js'

/** A handle of one of them. */
export type ToolHandle = DrizzleDb | KyselyDb | PrismaDb | KnexDb | TypeormDataSource

/** What the work writes through, by the handle: the tool's own transaction. */
export type ToolTx<Handle> = Handle extends PrismaDb
  ? PrismaTx<Handle>
  : Handle extends TypeormDataSource
    ? TypeormTx<Handle>
    : Handle extends KyselyDb
      ? KyselyTx<Handle>
      : Handle extends DrizzleDb
        ? DrizzleTx<Handle>
        : Handle extends KnexDb
          ? KnexTx<Handle>
          : never

/** The tool behind a handle; undefined where it is none of them. */
export function knownTool(handle: unknown): KnownTool | undefined {
  for (const told of [prisma, typeorm, kysely, drizzle, knex]) {
    const known = told(handle)
    if (known !== undefined) return known
  }
  return undefined
}

/**
 * Why a handle that looks like a tool cannot be one: what is inside a transaction already, and tools that need a recipe. Some of them
 * have a `transaction` and a `query` that mean something else.
 */
export function misfit(handle: unknown): string | undefined {
  if (hasFunctions(handle, ['authenticate', 'define', 'getQueryInterface']))
    return 'for Sequelize pass { transaction, query }, as docs/orms.md has it'
  if (hasFunctions(handle, ['getRepository', 'transaction']))
    return 'this is an EntityManager of TypeORM; pass its DataSource'
  if (hasFunctions(handle, ['transactional', 'fork']) || isMikroOrm(handle))
    return 'for MikroORM pass { transaction, query }, as docs/orms.md has it'
  if (hasFunctions(handle, ['$queryRawUnsafe'])) return notInside('Prisma')
  if (hasFunctions(handle, ['executeQuery', 'withoutPlugins'])) return notInside('Kysely')
  if (hasFunctions(handle, ['execute', '$with'])) return notInside('Drizzle')
  if (hasFunctions(handle, ['raw', 'batchInsert'])) return notInside('Knex')
  return undefined
}

function isMikroOrm(handle: unknown): boolean {
  return typeof handle === 'object' && handle !== null && 'em' in handle && hasFunctions(handle.em, ['fork'])
}

function notInside(name: string): string {
  return `this is a transaction of ${name}; pass what begins it, and this to within()`
}
