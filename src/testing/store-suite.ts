/**
 * The suite that every store must pass: the contract of `store.ts`, case by case, on real servers, over clients and processes of their own.
 */
import { caseFor, type StoreCase } from './store/case.js'
import { claimCases, ownershipCases } from './store/claims.js'
import { ambiguityCases, commitCases } from './store/commits.js'
import type { StoreHarness } from './store/harness.js'
import { identityCases } from './store/identity.js'
import { operatingCases } from './store/operating.js'
import { endingCases, zombieCases } from './store/promises.js'
import { raceCases } from './store/races.js'
import { renewalCases } from './store/renewal.js'
import { retentionCases } from './store/retention.js'
import { safeguardCases } from './store/safeguards.js'
import { sweepingCases } from './store/sweeping.js'
import { abandonCases, lateOwnerCases, takeOverCases } from './store/takeover.js'
import { takeOverRaceCases } from './store/takeover-races.js'
import { lookUpCases, replacementCases, transactionCases } from './store/transactions.js'
import { undoCases } from './store/undo.js'
import { withinCases } from './store/within.js'
import type { SuiteCase } from './suite.js'

const cases: readonly StoreCase[] = [
  ...claimCases,
  ...ownershipCases,
  ...takeOverCases,
  ...lateOwnerCases,
  ...abandonCases,
  ...takeOverRaceCases,
  ...renewalCases,
  ...retentionCases,
  ...identityCases,
  ...sweepingCases,
  ...transactionCases,
  ...lookUpCases,
  ...replacementCases,
  ...undoCases,
  ...commitCases,
  ...ambiguityCases,
  ...withinCases,
  ...operatingCases,
  ...raceCases,
  ...endingCases,
  ...zombieCases,
  ...safeguardCases,
]

/**
 * The cases that prove a store. They run one after the other, on a ledger that may hold other records; each uses keys of its own.
 *
 * What the store does without (`lacks`) and what the harness does not give shows as cases with a `skip` reason. A case rejects with what was
 * expected and what was found. Time is moved by `advance`, but for the renewals, which come on the machine's own clock: all cases take some
 * 5 s in memory and 20 s over a server on the same machine.
 *
 * @example
 * ```ts
 * const store = memory({ clock })
 * const cases = storeSuite({ open: async () => ({ store, close: () => undefined }), advance: (ms) => clock.advance(ms) })
 * for (const { name, skip, run } of cases) test.skipIf(skip)(skip ? `${name} (${skip})` : name, run)
 * ```
 */
export function storeSuite<Tx extends object>(harness: StoreHarness<Tx>): readonly SuiteCase[] {
  return cases.map((one) => caseFor(harness, one))
}
