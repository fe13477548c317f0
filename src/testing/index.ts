/**
 * The testing kit: suites for stores and HTTP adapters, a clock that the test moves, faults on demand, and the concurrent test as one assertion.
 *
 * Nothing here knows a test runner. Nothing of the library imports it.
 */
export {
  checkLedger,
  type LedgerCheck,
  type LedgerFinding,
  type LoggedAttempt,
  type LoggedEffect,
  type Told,
} from './check-ledger.js'
export { type MovableClock, movableClock, seededRandom } from './clock.js'
export {
  type CutAct,
  type CutMessage,
  type CutPlan,
  type CutRun,
  type CuttingProxy,
  cuttingProxy,
} from './cutting-proxy.js'
export type { Effects } from './endings.js'
export { type ExpectOnce, expectOnce, type Once } from './expect-once.js'
export { type ExpectThroughTx, expectThroughTx } from './expect-through-tx.js'
export {
  type Fault,
  type FaultPlan,
  type FaultPoint,
  type Faults,
  planFaults,
  type Stopped,
} from './faults.js'
export { withFaults } from './faulty-store.js'
export type { Given, HttpHarness, HttpRoute, HttpSite, Said, SaidHeaders } from './http/harness.js'
export { httpSuite } from './http-suite.js'
export type {
  Effect,
  EffectLedger,
  OpenedStore,
  OwnTransaction,
  ProcessModule,
  StoreHarness,
} from './store/harness.js'
export { storeSuite } from './store-suite.js'
export type { SuiteCase } from './suite.js'
