import { type MemoryTx, memory } from 'retrysafe/memory'
import { httpSuite } from 'retrysafe/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { caller, start } from './fetch-site.js'
import { memoryLedger } from './memory-ledger.js'
import { runSuite } from './run-suite.js'

const kinds = (['transaction', 'lease'] as const).flatMap((mode) =>
  (['replies', 'around'] as const).map((handlers) => ({ mode, handlers })),
)

for (const { mode, handlers } of kinds) {
  describe(`fetch over memory, ${mode} mode, handlers: ${handlers}`, () => {
    const store = memory()
    runSuite(
      httpSuite<MemoryTx>({
        mode,
        handlers,
        open: async () => ({ store, close: () => undefined }),
        ledger: memoryLedger(),
        caller,
        start,
      }),
    )
  })
}

describe('over PostgreSQL', () => {
  let database: FreshDatabase

  beforeAll(async () => {
    database = await freshDatabase()
    await prepare(database)
  })

  afterAll(async () => {
    await closeOutside()
    await database.drop()
  })

  for (const { mode, handlers } of kinds) {
    describe(`fetch, ${mode} mode, handlers: ${handlers}`, () => {
      runSuite(httpSuite<Tx>({ mode, handlers, open: () => open(database), ledger, caller, start }))
    })
  }
})
