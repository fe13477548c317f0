/** Effects in the memory of the test, without any constraint. */
import type { MemoryTx } from 'retrysafe/memory'
import type { Effect, EffectLedger } from 'retrysafe/testing'

export function memoryLedger(): EffectLedger<MemoryTx> {
  const effects: Effect[] = []
  return {
    write: (tx, effect) => {
      if (tx === undefined) effects.push(effect)
      else tx.defer(() => void effects.push(effect))
    },
    read: (key) => effects.filter((effect) => effect.key === key),
  }
}
