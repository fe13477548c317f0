import { randomUUID } from 'node:crypto'
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { expectThroughTx, planFaults, withFaults } from 'retrysafe/testing'
import { expect, test } from 'vitest'

/** A ledger, and a work that writes to it as the test says: through `tx`, past it, or not at all. */
function service(write: (through: (effect: string) => void, effects: string[]) => void) {
  const effects: string[] = []
  const faults = planFaults()
  const safe = retrysafe({ store: withFaults(memory(), faults) })
  const intent = { scope: 's', key: randomUUID() }
  const attempt = () =>
    safe.transaction(intent, ({ tx }) => {
      write((effect) => tx.defer(() => void effects.push(effect)), effects)
      return 'done'
    })
  return { effects, test: { faults, attempt, effects: () => effects.length } }
}

test('work that writes through tx takes effect once, behind an attempt that left nothing', async () => {
  const { effects, test } = service((through) => through('order'))
  effects.push('an earlier one')
  await expectThroughTx(test)
  expect(effects).toEqual(['an earlier one', 'order'])
})

test('a write past tx stands although the transaction was rolled back', async () => {
  const { test } = service((_, effects) => effects.push('order'))
  await expect(expectThroughTx(test)).rejects.toThrow('1 of the effects stand')
})

test('a write past tx is found beside one that goes through it', async () => {
  const { test } = service((through, effects) => {
    through('order')
    effects.push('mail')
  })
  await expect(expectThroughTx(test)).rejects.toThrow('the work wrote past tx')
})

test('a count that does not see the effect has shown nothing', async () => {
  const { test } = service(() => undefined)
  await expect(expectThroughTx(test)).rejects.toThrow('counts something else')
})

test('an attempt that runs no work has shown nothing, and leaves no fault behind', async () => {
  const { test } = service((through) => through('order'))
  await test.attempt()
  await expect(expectThroughTx(test)).rejects.toThrow('did not come to its end')
  expect(await test.faults.arrive('save')).toBeUndefined()
})
