/** The store suite on a MariaDB server of its own, over clients and processes. */
import { afterAll, beforeAll } from 'vitest'
import { storeSuite } from '../../dist/testing/index.js'
import { type Mariadb, mariadbProgram, startMariadb } from '../../servers/mariadb.js'
import { runSuite } from '../suites/run-suite.js'
import { missing } from './debian.js'
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
} from './processes/mysql-store.js'

/** Why there is no server to test on; undefined where there is one. */
export const noMariadb = missing(mariadbProgram, 'mariadb-server')

/** `options` are the server's: its default isolation, say. */
export function mysqlSuite(opened: Omit<Opening, 'url'>, options: readonly string[] = []): void {
  let server: Mariadb
  let opening: Opening

  beforeAll(async () => {
    server = await startMariadb(options)
    opening = { ...opened, url: `${server.url}/app` }
    await prepare(opening)
  })

  afterAll(async () => {
    await closeOutside()
    await server.stop()
  })

  runSuite(
    storeSuite<Tx>({
      open: () => open(opening),
      advance,
      ledger,
      own,
      plant,
      processes: {
        module: new URL('../../build/test/peers/processes/mysql-store.js', import.meta.url),
        // Read when a case starts its processes: by then there is a server.
        get data() {
          return opening
        },
      },
    }),
  )
}
