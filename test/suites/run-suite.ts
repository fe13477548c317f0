/** Turns the cases of a suite into tests; a case that is skipped says why in its name. */
import type { SuiteCase } from 'retrysafe/testing'
import { test } from 'vitest'

export function runSuite(cases: readonly SuiteCase[]): void {
  for (const { name, rule, skip, run } of cases) {
    const title = `rule ${rule}: ${name}`
    test.skipIf(skip !== undefined)(skip === undefined ? title : `${title} (skipped: ${skip})`, run)
  }
}
