/** The whole store suite over each tool that `postgres()` knows, in this process and among others. */
import { afterAll, beforeAll, describe } from 'vitest'
import { storeSuite } from '../../dist/testing/index.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { runSuite } from '../suites/run-suite.js'
import {
  advance,
  closeOutside,
  ledger,
  type Opening,
  open,
  own,
  plant,
  prepare,
} from './processes/postgres-tools-store.js'
import { toolNames } from './processes/tools/tools.js'

describe.each(toolNames)('%s', (tool) => {
  let database: FreshDatabase
  let opening: Opening

  beforeAll(async () => {
    database = await freshDatabase()
    opening = { connectionString: database.connectionString, tool }
    await prepare(opening)
  })

  afterAll(async () => {
    await closeOutside()
    await database.drop()
  })

  runSuite(
    storeSuite<object>({
      open: () => open(opening),
      advance,
      ledger,
      own,
      plant,
      lacks: { idleTimeout: 'a tool does not say that its connection is gone: the end is read back' },
      processes: {
        module: new URL('../../build/test/peers/processes/postgres-tools-store.js', import.meta.url),
        // Read when a case starts its processes: by then there is a database.
        get data() {
          return opening
        },
      },
    }),
  )
})
