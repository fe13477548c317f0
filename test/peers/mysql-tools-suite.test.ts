/** The whole store suite over each tool that `mysql()` takes, in this process and among others. */
import { afterAll, beforeAll, describe } from 'vitest'
import { storeSuite } from '../../dist/testing/index.js'
import { type Mariadb, startMariadb } from '../../servers/mariadb.js'
import { runSuite } from '../suites/run-suite.js'
import { noMariadb } from './mysql-suite.js'
import { mysqlToolNames } from './processes/mysql-tools/tools.js'
import {
  advance,
  closeOutside,
  ledger,
  open,
  own,
  plant,
  prepare,
  type ToolOpening,
} from './processes/mysql-tools-store.js'

describe.skipIf(noMariadb !== undefined).each(mysqlToolNames)(
  `%s on MariaDB (${noMariadb ?? 'real'})`,
  (tool) => {
    let server: Mariadb
    let opening: ToolOpening

    beforeAll(async () => {
      server = await startMariadb()
      opening = { url: `${server.url}/app`, tool }
      await prepare(opening)
    })

    afterAll(async () => {
      await closeOutside()
      await server.stop()
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
          module: new URL('../../build/test/peers/processes/mysql-tools-store.js', import.meta.url),
          // Read when a case starts its processes: by then there is a server.
          get data() {
            return opening
          },
        },
      }),
    )
  },
)
