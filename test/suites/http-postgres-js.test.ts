import express from 'express'
import { httpSuite } from 'retrysafe/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { closeOutside, ledger, type Opening, open, prepare, type Tx } from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { caller, starter } from './express-site.js'
import { runSuite } from './run-suite.js'

let database: FreshDatabase
let opening: Opening

beforeAll(async () => {
  database = await freshDatabase()
  opening = { connectionString: database.connectionString, client: 'postgres.js' }
  await prepare(opening)
})

afterAll(async () => {
  await closeOutside()
  await database.drop()
})

for (const mode of ['transaction', 'lease'] as const) {
  describe(`Express 5 over postgres.js, ${mode} mode`, () => {
    runSuite(
      httpSuite<Tx>({
        mode,
        handlers: 'replies',
        open: () => open(opening),
        ledger,
        caller,
        start: starter(express, 'parser'),
      }),
    )
  })
}
