import { storeSuite } from 'retrysafe/testing'
import { afterAll, beforeAll } from 'vitest'
import {
  advance,
  closeOutside,
  ledger,
  open,
  own,
  plant,
  prepare,
  type Tx,
} from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { runSuite } from './run-suite.js'

let database: FreshDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await prepare(database.connectionString)
})

afterAll(async () => {
  await closeOutside()
  await database.drop()
})

runSuite(
  storeSuite<Tx>({
    open: () => open(database.connectionString),
    advance,
    ledger,
    own,
    plant,
    processes: {
      module: new URL('../../build/test/processes/postgres-store.js', import.meta.url),
      // Read when a case starts its processes: by then there is a database.
      get data() {
        return database.connectionString
      },
    },
  }),
)
