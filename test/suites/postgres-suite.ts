/** The store suite on a database of its own in the shared server, over clients and processes. */
import type { PostgresOptions } from 'retrysafe/postgres'
import { storeSuite } from 'retrysafe/testing'
import { afterAll, beforeAll } from 'vitest'
import type { ClientName } from '../processes/clients.js'
import {
  advance,
  closeOutside,
  ledger,
  type Opening,
  open,
  own,
  plant,
  prepare,
  type Tx,
} from '../processes/postgres-store.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { runSuite } from './run-suite.js'

/**
 * `settings` are the server's, for every session of the database: `TimeZone`, say. `through` gives the connection string of a pooler in front of
 * the database.
 */
export function postgresSuite(
  store: PostgresOptions = {},
  settings: Readonly<Record<string, string>> = {},
  client: ClientName = 'node-postgres',
  through: (connectionString: string) => string = (direct) => direct,
): void {
  let database: FreshDatabase
  let opening: Opening

  beforeAll(async () => {
    database = await freshDatabase()
    const url = new URL(database.connectionString)
    const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
    if (flags.length > 0) url.searchParams.set('options', flags.join(' '))
    opening = { connectionString: through(url.href), store, client }
    await prepare(opening)
  })

  afterAll(async () => {
    await closeOutside()
    await database.drop()
  })

  runSuite(
    storeSuite<Tx>({
      open: () => open(opening),
      advance,
      ledger,
      own,
      plant,
      mayConflict: store.isolation !== undefined,
      lacks: client.startsWith('a tool')
        ? { idleTimeout: 'a tool does not say that its connection is gone: the end is read back' }
        : {},
      processes: {
        module: new URL('../../build/test/processes/postgres-store.js', import.meta.url),
        // Read when a case starts its processes: by then there is a database.
        get data() {
          return opening
        },
      },
    }),
  )
}
