import { afterAll, beforeAll, describe } from 'vitest'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type HttpHarness, httpSuite } from '../../dist/testing/index.js'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { memoryLedger } from '../suites/memory-ledger.js'
import { runSuite } from '../suites/run-suite.js'
import { caller, type Format, starter } from './lambda-site.js'

const formats: readonly Format[] = ['1.0', '2.0']
const kinds = formats.flatMap((format) =>
  (['transaction', 'lease'] as const).flatMap((mode) =>
    (['replies', 'around'] as const).map((handlers) => ({ format, mode, handlers })),
  ),
)

const inOnePiece = 'the result of a function is one piece'

function lacks(format: Format): NonNullable<HttpHarness<object>['lacks']> {
  const pieces = { stream: inOnePiece, writes: inOnePiece }
  // lambda.test.ts has this case.
  return format === '1.0' ? { ...pieces, throw: 'a REST API answers a failed invocation with 502' } : pieces
}

for (const { format, mode, handlers } of kinds) {
  describe(`Lambda over memory, payload ${format}, ${mode} mode, handlers: ${handlers}`, () => {
    const store = memory()
    runSuite(
      httpSuite<MemoryTx>({
        mode,
        handlers,
        open: async () => ({ store, close: () => undefined }),
        ledger: memoryLedger(),
        caller,
        start: starter(format),
        lacks: lacks(format),
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

  for (const { format, mode, handlers } of kinds) {
    describe(`Lambda, payload ${format}, ${mode} mode, handlers: ${handlers}`, () => {
      runSuite(
        httpSuite<Tx>({
          mode,
          handlers,
          open: () => open(database),
          ledger,
          caller,
          start: starter(format),
          lacks: lacks(format),
        }),
      )
    })
  }
})
