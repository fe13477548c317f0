/** The tools that `postgres()` knows by their shape. */
import type { ToolClient } from './client.js'
import { drizzleOnPool, drizzleOnSql } from './drizzle.js'
import { knexOnPg } from './knex.js'
import { kyselyOnPool } from './kysely.js'
import { prismaOnPg } from './prisma.js'
import { typeormSource } from './typeorm.js'

export const tools = {
  'Drizzle over node-postgres': drizzleOnPool,
  'Drizzle over postgres.js': drizzleOnSql,
  Kysely: kyselyOnPool,
  Prisma: prismaOnPg,
  Knex: knexOnPg,
  TypeORM: typeormSource,
} as const satisfies Record<string, (connectionString: string) => ToolClient | Promise<ToolClient>>

export type ToolName = keyof typeof tools

export const toolNames = Object.keys(tools) as ToolName[]
