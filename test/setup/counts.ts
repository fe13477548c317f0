/** Ends a run with one plain line of counts, for people and for machines that read logs. */
import type { Reporter, TestModule } from 'vitest/node'

export default function counts(): Reporter {
  function onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const states = modules.flatMap((module) =>
      [...module.children.allTests()].map((one) => one.result().state),
    )
    const count = (state: string) => states.filter((one) => one === state).length
    // A file that could not be loaded has no tests to count, but it has failed.
    const broken = modules.filter(
      (module) => module.state() === 'failed' && module.errors().length > 0,
    ).length
    // An error that no test has caught fails the run as well.
    const failed = count('failed') + broken + unhandled.length
    console.log(`\n${count('passed')} passed, ${failed} failed, ${count('skipped')} skipped`)
  }

  return { onTestRunEnd }
}
