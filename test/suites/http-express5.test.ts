import express from 'express'
import { type MemoryTx, memory } from 'retrysafe/memory'
import { type EffectLedger, httpSuite } from 'retrysafe/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { closeOutside, ledger, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { caller, starter } from './express-site.js'
import { memoryLedger } from './memory-ledger.js'
import { runSuite } from './run-suite.js'

const kinds = (['transaction', 'lease'] as const).flatMap((mode) =>
  (['replies', 'around'] as const).map((handlers) => ({ mode, handlers })),
)

for (const { mode, handlers } of kinds) {
  describe(`Express 5 over memory, ${mode} mode, handlers: ${handlers}`, () => {
    const store = memory()
    const effects: EffectLedger<MemoryTx> = memoryLedger()
    runSuite(
      httpSuite<MemoryTx>({
        mode,
        handlers,
        open: async () => ({ store, close: () => undefined }),
        ledger: effects,
        caller,
        start: starter(express, 'parser'),
      }),
    )
  })
}

describe('Express 5 without a parser, replies', () => {
  const store = memory()
  runSuite(
    httpSuite<MemoryTx>({
      mode: 'transaction',
      handlers: 'replies',
      open: async () => ({ store, close: () => undefined }),
      ledger: memoryLedger(),
      caller,
      start: starter(express, 'no parser'),
    }),
  )
})

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
    describe(`Express 5, ${mode} mode, handlers: ${handlers}`, () => {
      runSuite(
        httpSuite<Tx>({
          mode,
          handlers,
          open: () => open(database),
          ledger,
          caller,
          start: starter(express, 'parser'),
        }),
      )
    })
  }
})
