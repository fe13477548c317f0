/** The package as `test/peers` gets it: that folder has a manifest, and so is a package that does not know this one by name. */
export { isRetrysafeError, retrysafe } from 'retrysafe'
export {
  type BetterSqlite3,
  type NodeSqlite,
  type SqliteOptions,
  type SqliteStore,
  sqlite,
} from 'retrysafe/sqlite'
export {
  type Effect,
  type EffectLedger,
  type OpenedStore,
  type OwnTransaction,
  type StoreHarness,
  storeSuite,
} from 'retrysafe/testing'
