/** The store suite on better-sqlite3: connections of its own for each transaction, and one that is shared. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { runSuite } from '../suites/run-suite.js'
import { casesFor, closeOutside, prepare } from './processes/sqlite-store.js'

describe.each([{ shared: false }, { shared: true }])('better-sqlite3, shared: $shared', ({ shared }) => {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-sqlite-'))
  const opening = { file: join(folder, 'records.db'), driver: 'better-sqlite3', shared } as const

  beforeAll(() => prepare(opening))

  afterAll(() => {
    closeOutside()
    rmSync(folder, { recursive: true })
  })

  runSuite(casesFor(opening))
})
