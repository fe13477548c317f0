/** The doctor behind PgBouncer in transaction mode (Debian's 1.18): it sees the pooler, and what a prepared statement would meet there. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Finding } from '../../dist/index.js'
import { type PgBouncer, pgBouncerProgram, startPgBouncer } from '../../servers/pgbouncer.js'
import { retrysafe } from '../cli/run.js'
import { type Bench, openBench } from '../postgres/harness.js'
import { missing } from './debian.js'

const reason = missing(pgBouncerProgram, 'pgbouncer')

describe.skipIf(reason !== undefined)(`the doctor behind PgBouncer (${reason ?? 'transaction mode'})`, () => {
  const folder = join(import.meta.dirname, '../../build/cli', String(process.pid))
  let bouncer: PgBouncer
  let bench: Bench
  let url: string

  beforeAll(async () => {
    bouncer = await startPgBouncer({ connectionString: inject('connectionString') })
    bench = await openBench()
    url = bouncer.through(bench.database.connectionString)
    mkdirSync(folder, { recursive: true })
  })

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await bench.close()
    await bouncer.stop()
  })

  async function pooler(words: readonly string[]): Promise<Finding | undefined> {
    const { json } = await retrysafe(['doctor', '--json', ...words], { url })
    return json<{ findings: readonly Finding[] }>().findings.find(({ id }) => id === 'pooler')
  }

  test('a pooler in transaction mode is seen, and is fine without prepared statements', async () => {
    expect(await pooler([])).toMatchObject({
      level: 'ok',
      found: 'a pooler in transaction mode, prepare: false',
    })
  })

  test('prepared statements behind one that does not follow names are an error', async () => {
    const file = join(folder, 'prepared.mjs')
    const pool = `new pg.Pool({ connectionString: process.env.DATABASE_URL })`
    const lines = [
      `import pg from 'pg'`,
      `import { postgres } from 'retrysafe/postgres'`,
      `export default postgres(${pool}, { prepare: true })`,
    ]
    writeFileSync(file, lines.join('\n'))
    expect(await pooler(['--store', file])).toMatchObject({
      level: 'error',
      found: expect.stringMatching(/refuses prepared statements \((26000|42P05)\)/),
    })
  })
})
