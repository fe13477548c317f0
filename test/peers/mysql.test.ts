/** The store suite on MariaDB, in one process and among four, over each client. */
import { describe } from 'vitest'
import { mysqlSuite, noMariadb } from './mysql-suite.js'

describe.skipIf(noMariadb !== undefined)(`MariaDB (${noMariadb ?? 'real'})`, () => {
  describe('mysql2/promise', () => mysqlSuite({ client: 'mysql2/promise' }))
})
