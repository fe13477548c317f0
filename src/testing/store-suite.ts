/**
 * The suite that every store must pass: the contract of `store.ts`, case by case, on real servers, over clients and processes of their own.
 */
import { claimCases } from './store/claims.js'
import { commitCases } from './store/commits.js'
import type { StoreHarness } from './store/harness.js'
import { identityCases } from './store/identity.js'
import { operatingCases } from './store/operating.js'
import { promiseCases } from './store/promises.js'
import { raceCases } from './store/races.js'
import { renewalCases } from './store/renewal.js'
import { retentionCases } from './store/retention.js'
import { testsIn } from './store/room.js'
import { sweepingCases } from './store/sweeping.js'
import { takeOverCases } from './store/takeover.js'
import { takeOverRaceCases } from './store/takeover-races.js'
import { transactionCases } from './store/transactions.js'
import { withinCases } from './store/within.js'
import type { SuiteCase } from './suite.js'

/**
 * The cases that prove a store. They run one after the other, on a ledger that may hold other records; each uses keys of its own.
 *
 * What the store does without (`lacks`) and what the harness does not give shows as cases with a `skip` reason.
 *
 * @example
 * ```ts
 * const store = memory({ clock })
 * const cases = storeSuite({ open: async () => ({ store, close: () => undefined }), advance: (ms) => clock.advance(ms) })
 * for (const { name, skip, run } of cases) test.skipIf(skip)(skip ? `${name} (${skip})` : name, run)
 * ```
 */
export function storeSuite<Tx extends object>(harness: StoreHarness<Tx>): readonly SuiteCase[] {
  const test = testsIn(harness)
  return [
    ...claimCases(test),
    ...takeOverCases(test),
    ...takeOverRaceCases(test),
    ...renewalCases(test),
    ...retentionCases(test),
    ...identityCases(test),
    ...sweepingCases(test),
    ...transactionCases(test),
    ...commitCases(test),
    ...withinCases(test),
    ...operatingCases(test),
    ...raceCases(test),
    ...promiseCases(test),
  ]
}
