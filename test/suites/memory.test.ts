import { type MemoryTx, memory } from 'retrysafe/memory'
import { movableClock, storeSuite } from 'retrysafe/testing'
import { memoryLedger } from './memory-ledger.js'
import { runSuite } from './run-suite.js'

const clock = movableClock()
const store = memory({ clock })
const lacks = { idleTimeout: 'a transaction in memory ends with its process' }

runSuite(
  storeSuite<MemoryTx>({
    open: async () => ({ store, close: () => undefined }),
    advance: (ms) => clock.advance(ms),
    ledger: memoryLedger(),
    own: () => store.transactions.own(),
    lacks,
  }),
)
