import { describe } from 'vitest'
import { postgresSuite } from './postgres-suite.js'

describe('postgres.js', () => {
  postgresSuite({}, {}, 'postgres.js')
})

describe('postgres.js, own types, statements without a name', () => {
  postgresSuite({}, { TimeZone: 'Etc/GMT+11' }, 'postgres.js, own types')
})

describe('postgres.js, serializable, prepared statements', () => {
  postgresSuite(
    { isolation: 'serializable', prepare: true },
    { TimeZone: 'Etc/GMT-13', bytea_output: 'escape', standard_conforming_strings: 'off' },
    'postgres.js',
  )
})
