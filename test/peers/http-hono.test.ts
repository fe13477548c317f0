import { afterAll, beforeAll, describe } from 'vitest'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { httpSuite } from '../../dist/testing/index.js'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { memoryLedger } from '../suites/memory-ledger.js'
import { runSuite } from '../suites/run-suite.js'
import { caller, starter } from './hono-site.js'

const kinds = (['transaction', 'lease'] as const).flatMap((mode) =>
  (['replies', 'around'] as const).map((handlers) => ({ mode, handlers })),
)

for (const { mode, handlers } of kinds) {
  for (const parser of ['no parser', 'parser'] as const) {
    describe(`Hono over memory, ${mode} mode, handlers: ${handlers}, ${parser}`, () => {
      const store = memory()
      runSuite(
        httpSuite<MemoryTx>({
          mode,
          handlers,
          open: async () => ({ store, close: () => undefined }),
          ledger: memoryLedger(),
          caller,
          start: starter(parser),
        }),
      )
    })
  }
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
    describe(`Hono, ${mode} mode, handlers: ${handlers}`, () => {
      runSuite(
        httpSuite<Tx>({
          mode,
          handlers,
          open: () => open(database),
          ledger,
          caller,
          start: starter('no parser'),
        }),
      )
    })
  }
})
