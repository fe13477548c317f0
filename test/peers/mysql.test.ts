/** The store suite on MariaDB, in one process and among four, over each client. */
import { describe } from 'vitest'
import { mysqlSuite, noMariadb } from './mysql-suite.js'

describe.skipIf(noMariadb !== undefined)(`MariaDB (${noMariadb ?? 'real'})`, () => {
  describe('mysql2/promise, in a zone ahead of UTC', () => {
    mysqlSuite({ client: 'mysql2/promise', session: ["set time_zone = '+13:00'"] })
  })

  describe('mysql2, in a zone behind UTC, without strict mode', () => {
    mysqlSuite({ client: 'mysql2', session: ["set time_zone = '-11:00', sql_mode = ''"] })
  })

  describe('mariadb, under a default of SERIALIZABLE', () => {
    mysqlSuite({ client: 'mariadb' }, ['--transaction-isolation=SERIALIZABLE'])
  })

  describe('mysql2/promise with everything about values changed that can be', () => {
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
