/** What a user may have set and must make no difference: isolation, time zone, prepared statements, how bytes are printed. */
import { describe } from 'vitest'
import { postgresSuite } from './postgres-suite.js'

describe('serializable, 13 h ahead of UTC, prepared statements', () => {
  postgresSuite(
    { isolation: 'serializable', prepare: true },
    { TimeZone: 'Etc/GMT-13', bytea_output: 'escape', DateStyle: 'German' },
  )
})

describe('repeatable read, 11 h behind UTC', () => {
  postgresSuite({ isolation: 'repeatable read' }, { TimeZone: 'Etc/GMT+11' })
})

describe('read committed on a server whose default is serializable', () => {
  postgresSuite({}, { default_transaction_isolation: 'serializable' })
})
