import { type MemoryTx, memory } from 'retrysafe/memory'
import { type Effect, movableClock, storeSuite } from 'retrysafe/testing'
import { runSuite } from './run-suite.js'

const clock = movableClock()
const store = memory({ clock })
const effects: Effect[] = []

runSuite(
  storeSuite<MemoryTx>({
    open: async () => ({ store, close: () => undefined }),
    advance: (ms) => clock.advance(ms),
    ledger: {
      write: (tx, effect) => {
        if (tx === undefined) effects.push(effect)
        else tx.defer(() => void effects.push(effect))
      },
      read: (key) => effects.filter((effect) => effect.key === key),
    },
    own: () => store.transactions.own(),
  }),
)
