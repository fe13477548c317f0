/** Layer J: each safeguard is taken out once, and the test that defends it goes red. No guarantee without such a test. */
import { describe, expect, inject, test } from 'vitest'
import { ablated, runOn } from './ablate.js'
import { safeguards } from './safeguards.js'

const connectionString = inject('connectionString')
const timeoutMs = 120_000

test(
  'nothing is taken out: every one of these tests passes on a plain copy',
  async () => {
    const copy = await ablated({ patches: [] }, 'none')
    const files = [...new Set(safeguards.map((one) => one.test[0]))]
    const names = [...new Set(safeguards.map((one) => one.test[1]))]
    const { ran, failed, output } = await runOn(copy, files, names, connectionString)
    expect(failed, output).toBe(0)
    expect(ran).toBeGreaterThanOrEqual(names.length)
  },
  timeoutMs,
)

describe.concurrent('without its safeguard a test is red', { timeout: timeoutMs }, () => {
  for (const [index, safeguard] of safeguards.entries()) {
    test(safeguard.name, async ({ expect }) => {
      const copy = await ablated(safeguard, String(index))
      const [file, name] = safeguard.test
      const { ran, failed, output } = await runOn(copy, [file], [name], connectionString)
      expect(ran, `no test ran: ${output}`).toBeGreaterThan(0)
      expect(failed, `still green without it: ${name}`).toBeGreaterThan(0)
    })
  }
})
