/** The tools that `postgres()` knows by their shape. */
import type { ToolClient } from './client.js'
import { drizzleOnPool, drizzleOnSql } from './drizzle.js'
import { knexOnPg } from './knex.js'
import { kyselyOnPool } from './kysely.js'
import { mikroOrm } from './mikro-orm.js'
import { prismaOnPg } from './prisma.js'
import { sequelizeOnPg } from './sequelize.js'
import { typeormSource } from './typeorm.js'

type Open = (connectionString: string) => ToolClient | Promise<ToolClient>

export const tools = {
  'Drizzle over node-postgres': drizzleOnPool,
  'Drizzle over postgres.js': drizzleOnSql,
  Kysely: kyselyOnPool,
  Prisma: prismaOnPg,
  Knex: knexOnPg,
  TypeORM: typeormSource,
} as const satisfies Record<string, Open>

export type ToolName = keyof typeof tools

export const toolNames = Object.keys(tools) as ToolName[]

/** With those that need a recipe. */
export const everyTool: readonly (readonly [string, Open])[] = [
  ...Object.entries(tools),
  ['MikroORM by its recipe', mikroOrm],
  ['Sequelize by its recipe', sequelizeOnPg],
]
