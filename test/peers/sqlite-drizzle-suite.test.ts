/** The store suite over Drizzle on better-sqlite3: connections of its own for each transaction, and one that is shared. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { runSuite } from '../suites/run-suite.js'
import { casesFor, closeOutside } from './processes/sqlite-drizzle-store.js'
import { prepare } from './processes/sqlite-store.js'

describe.each([{ shared: false }, { shared: true }])('Drizzle, shared: $shared', ({ shared }) => {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-drizzle-'))
  const opening = { file: join(folder, 'records.db'), shared }

  beforeAll(() => prepare({ ...opening, driver: 'better-sqlite3' }))

  afterAll(async () => {
    await closeOutside()
    rmSync(folder, { recursive: true })
  })

  runSuite(casesFor(opening))
})
