/** The store suite on `node:sqlite`, in the Node versions that have it: 22 and 24. */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeBinary } from './nodes.js'
import { casesFor, type Opening } from './processes/sqlite-store.js'
import type { Ran } from './processes/sqlite-suite.js'

const script = join(import.meta.dirname, '../../build/test/peers/processes/sqlite-suite.js')

describe.each([
  { major: 22, shared: false },
  { major: 24, shared: false },
  { major: 24, shared: true },
])('Node $major, shared: $shared', ({ major, shared }) => {
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-sqlite-'))
  const opening: Opening = { file: join(folder, 'records.db'), driver: 'node:sqlite', shared }
  const told = new Map<string, Ran>()
  let output = ''
  let ended: Promise<number | null> = Promise.resolve(null)

  beforeAll(async () => {
    const execPath = await nodeBinary(major)
    // 22 says in every process that SQLite is experimental there.
    const env = { ...process.env, NODE_NO_WARNINGS: '1' }
    const child = fork(script, { execPath, execArgv: [], env, silent: true })
    child.stderr?.on('data', (text) => {
      output += text
    })
    child.on('message', (ran: Ran) => void told.set(ran.name, ran))
    ended = new Promise((resolve) => child.on('exit', resolve))
    child.send(opening)
    await ended
  }, 180_000)

  afterAll(() => rmSync(folder, { recursive: true }))

  test('all cases were run', async () => {
    expect({ code: await ended, output }).toEqual({ code: 0, output: '' })
    expect(told.size).toBeGreaterThan(shared ? 110 : 180)
  })

  for (const { name, rule, skip } of casesFor(opening)) {
    const title = `rule ${rule}: ${name}`
    test.skipIf(skip !== undefined)(skip === undefined ? title : `${title} (skipped: ${skip})`, () => {
      expect(told.get(name)).toEqual({ name })
    })
  }
})
