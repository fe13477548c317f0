import { afterAll, beforeAll, describe } from 'vitest'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type EffectLedger, httpSuite } from '../../dist/testing/index.js'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { memoryLedger } from '../suites/memory-ledger.js'
import { runSuite } from '../suites/run-suite.js'
import { caller, type Setup, starter } from './koa-site.js'

const kinds = (['transaction', 'lease'] as const).flatMap((mode) =>
  (['replies', 'around'] as const).map((handlers) => ({ mode, handlers })),
)

function overMemory(kind: (typeof kinds)[number], setup: Setup = {}): void {
  const store = memory()
  const effects: EffectLedger<MemoryTx> = memoryLedger()
  runSuite(
    httpSuite<MemoryTx>({
      ...kind,
      open: async () => ({ store, close: () => undefined }),
      ledger: effects,
      caller,
      start: starter(setup),
    }),
  )
}

for (const kind of kinds) {
  describe(`Koa 3 over memory, ${kind.mode} mode, handlers: ${kind.handlers}`, () => overMemory(kind))
}

for (const kind of kinds) {
  describe(`Koa 3 over HTTP/2, ${kind.mode} mode, handlers: ${kind.handlers}`, () =>
    overMemory(kind, { http2: true }))
}

describe('Koa 3 without a parser, replies', () =>
  overMemory({ mode: 'transaction', handlers: 'replies' }, { parser: 'no parser' }))

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

  for (const kind of kinds) {
    describe(`Koa 3, ${kind.mode} mode, handlers: ${kind.handlers}`, () => {
      runSuite(httpSuite<Tx>({ ...kind, open: () => open(database), ledger, caller, start: starter() }))
    })
  }
})
