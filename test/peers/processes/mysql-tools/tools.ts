/** The tools that `mysql()` knows by their shape, and one that it does not. */
import type { MysqlToolClient } from './client.js'
import { drizzleAsMysql, drizzleOnMysql2 } from './drizzle.js'
import { knexOnMysql2 } from './knex.js'
import { kyselyOnMysql2 } from './kysely.js'
import { recipeOnMysql2 } from './recipe.js'
import { typeormOnMysql2 } from './typeorm.js'

export const mysqlTools = {
  Drizzle: drizzleOnMysql2,
  'Drizzle as MySQL is spoken to': drizzleAsMysql,
  Kysely: kyselyOnMysql2,
  Knex: knexOnMysql2,
  TypeORM: typeormOnMysql2,
  'a tool by its recipe': recipeOnMysql2,
} as const satisfies Record<string, (url: string) => MysqlToolClient | Promise<MysqlToolClient>>

export type MysqlToolName = keyof typeof mysqlTools

export const mysqlToolNames = Object.keys(mysqlTools) as MysqlToolName[]
