/** The store suite on MariaDB, in one process and among four, over each client. */
import { describe } from 'vitest'
import { mysqlSuite, noMariadb } from './mysql-suite.js'

describe.skipIf(noMariadb !== undefined)(`MariaDB (${noMariadb ?? 'real'})`, () => {
  describe('mysql2/promise, in a zone ahead of UTC, under a default of REPEATABLE READ', () => {
    mysqlSuite({ client: 'mysql2/promise', session: ["set time_zone = '+13:00'"] }, [
      '--transaction-isolation=REPEATABLE-READ',
    ])
  })

  describe('mysql2, in a zone behind UTC, without strict mode, under a default of READ UNCOMMITTED', () => {
    mysqlSuite({ client: 'mysql2', session: ["set time_zone = '-11:00', sql_mode = ''"] }, [
      '--transaction-isolation=READ-UNCOMMITTED',
    ])
  })

  describe('mariadb, under a default of SERIALIZABLE', () => {
    mysqlSuite({ client: 'mariadb' }, ['--transaction-isolation=SERIALIZABLE'])
  })

  describe('mysql2/promise, as MySQL is spoken to', () => {
    mysqlSuite({ client: 'mysql2/promise', asMysql: true })
  })

  describe('mysql2/promise with everything about values changed that can be, and without autocommit', () => {
    const strange = {
      rowsAsArray: true,
      typeCast: false,
      dateStrings: true,
      bigNumberStrings: true,
      supportBigNumbers: true,
      namedPlaceholders: true,
      flags: ['-FOUND_ROWS'],
    }
    const mode = "set sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_UNSIGNED_SUBTRACTION'"
    mysqlSuite({ client: 'mysql2/promise', pool: strange, session: [mode, 'set autocommit = 0'] })
  })
})
