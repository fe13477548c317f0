/** The package by its own name, for modules of `test/peers`: that folder has a manifest of its own, from where the name means nothing. */
export { type MysqlOptions, type MysqlStore, type MysqlTool, mysql } from 'retrysafe/mysql'
export type { Effect, EffectLedger, OpenedStore, OwnTransaction } from 'retrysafe/testing'
