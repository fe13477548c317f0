/** The HTTP suite on one platform of Nest: both modes, methods that return replies and others, over memory and PostgreSQL. */
import { afterAll, beforeAll, describe } from 'vitest'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type EffectLedger, httpSuite } from '../../dist/testing/index.js'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { memoryLedger } from '../suites/memory-ledger.js'
import { runSuite } from '../suites/run-suite.js'
import { type Answering, caller, type NestSetup, type PlatformName, starter } from './nest-site.js'

const kinds = (['transaction', 'lease'] as const).flatMap((mode) => [
  { mode, handlers: 'replies' as const, answering: 'returns' as const },
  { mode, handlers: 'around' as const, answering: 'returns' as const },
  { mode, handlers: 'around' as const, answering: 'writes' as const },
])

const lacking = (answering: Answering) =>
  answering === 'returns' ? { lacks: { writes: 'what a method returns is written in one piece' } } : {}

function overMemory({ mode, handlers, answering }: (typeof kinds)[number], setup: NestSetup): void {
  const store = memory()
  const effects: EffectLedger<MemoryTx> = memoryLedger()
  runSuite(
    httpSuite<MemoryTx>({
      mode,
      handlers,
      open: async () => ({ store, close: () => undefined }),
      ledger: effects,
      caller,
      start: starter(setup, answering),
      ...lacking(answering),
    }),
  )
}

export function nestSuites(platform: PlatformName): void {
  for (const kind of kinds) {
    const { mode, handlers, answering } = kind
    describe(`Nest on ${platform} over memory, ${mode} mode, handlers: ${handlers}, ${answering}`, () =>
      overMemory(kind, { platform }))
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

    for (const { mode, handlers, answering } of kinds) {
      describe(`Nest on ${platform}, ${mode} mode, handlers: ${handlers}, ${answering}`, () => {
        runSuite(
          httpSuite<Tx>({
            mode,
            handlers,
            open: () => open(database),
            ledger,
            caller,
            start: starter({ platform }, answering),
            ...lacking(answering),
          }),
        )
      })
    }
  })
}
