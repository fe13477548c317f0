/** The package under its own name, for what lies below `test/peers`, whose manifest has another name. */
export { type PostgresOptions, type PostgresStore, type PostgresTool, postgres } from 'retrysafe/postgres'
export type { Effect, EffectLedger, OpenedStore, OwnTransaction } from 'retrysafe/testing'
