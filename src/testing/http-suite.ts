/**
 * The suite that every HTTP adapter must pass, over real sockets: what is refused, what is replayed, what fails, and what happens at once.
 */
import { caseFor, type HttpCase } from './http/case.js'
import { crowdCases } from './http/crowds.js'
import { failureCases } from './http/failures.js'
import type { HttpHarness } from './http/harness.js'
import { keyCases } from './http/keys.js'
import { outageCases } from './http/outages.js'
import { replayCases } from './http/replays.js'
import { requestCases } from './http/requests.js'
import type { SuiteCase } from './suite.js'

const cases: readonly HttpCase[] = [
  ...keyCases,
  ...replayCases,
  ...requestCases,
  ...failureCases,
  ...outageCases,
  ...crowdCases,
]

/**
 * The cases that prove an adapter in one mode, around one kind of handler. Each starts an application of its own through `start`, which mounts
 * abstract routes with the framework's own means, and rejects with what was expected and what was found. Ways to answer that the framework
 * does not have (`lacks`) show as cases with a `skip` reason.
 *
 * @example
 * ```ts
 * const cases = httpSuite({ mode: 'transaction', handlers: 'replies', open, ledger, caller: (req) => req.headers.authorization, start })
 * for (const { name, skip, run } of cases) test.skipIf(skip)(skip ? `${name} (${skip})` : name, run)
 * ```
 */
export function httpSuite<Tx extends object>(harness: HttpHarness<Tx>): readonly SuiteCase[] {
  return cases.map((one) => caseFor(harness, one))
}
