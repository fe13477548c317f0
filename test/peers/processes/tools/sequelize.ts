/** Sequelize 6, by the recipe of docs/orms.md. */
import type { Transaction } from 'sequelize'
import { type PostgresTool, postgres } from '../../../processes/own-name.js'
import { peer } from '../peer.js'
import { connections, type ToolClient } from './client.js'

const { DataTypes, QueryTypes, Sequelize } = (
  await peer<{ default: typeof import('sequelize') }>('sequelize')
).default

const names = { timestamps: false, freezeTableName: true }

export function sequelizeOnPg(connectionString: string): ToolClient {
  const sequelize = new Sequelize(connectionString, { logging: false, pool: { max: connections } })
  const effects = sequelize.define(
    'effect',
    { key: DataTypes.TEXT, payload: DataTypes.TEXT, generation: DataTypes.BIGINT },
    names,
  )
  const uniques = sequelize.define('unique_effect', { key: DataTypes.TEXT }, names)
  const tool: PostgresTool<Transaction> = {
    transaction: (work) => sequelize.transaction(work),
    query: (tx, text) => sequelize.query<object>(text, { type: QueryTypes.SELECT, transaction: tx ?? null }),
  }
  return {
    handle: sequelize,
    store: (options) => postgres(tool, options),
    insert: (tx, effect) => effects.create({ ...effect }, { transaction: tx as Transaction }),
    insertUnique: (tx, key) => uniques.create({ key }, { transaction: tx as Transaction }),
    violation: 'UniqueConstraintError',
    build: (tx, effect) => () => effects.create({ ...effect }, { transaction: tx as Transaction }),
    nested: (tx, work) => sequelize.transaction({ transaction: tx as Transaction }, work),
    transaction: (work) => sequelize.transaction(work),
    end: () => sequelize.close(),
  }
}
