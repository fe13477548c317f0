/**
 * What a suite is: a list of cases that knows no test runner, so that anybody can prove a store or an adapter of their own in theirs.
 */

/** One case of a suite. It passes unless `run` rejects. */
export interface SuiteCase {
  /** The rule that the case defends, as a sentence. Unique within its suite. */
  readonly name: string
  /** Number of the protocol rule (`docs/rules.md`). */
  readonly rule: number
  /** Why the case cannot be run here; absent when it can. */
  readonly skip?: string
  /** Runs the case; rejects with what was expected and what was found. Cases of one suite run one after the other. */
  run(): Promise<void>
}
