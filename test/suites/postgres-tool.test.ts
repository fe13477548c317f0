import { describe } from 'vitest'
import { postgresSuite } from './postgres-suite.js'

describe('a tool over node-postgres', () => {
  postgresSuite({}, {}, 'a tool over node-postgres')
})

describe('a tool over postgres.js that wraps errors', () => {
  postgresSuite({}, { TimeZone: 'Etc/GMT+11' }, 'a tool over postgres.js')
})

describe('a tool, serializable', () => {
  postgresSuite({ isolation: 'serializable' }, {}, 'a tool over node-postgres')
})
