/** Which server these tests ran on: the embedded one is PostgreSQL 18, an installed one may be older. */
import { expect, inject, test } from 'vitest'
import { openBench } from './harness.js'

test('the server is the one that this run is about, and one that is supported', async () => {
  const bench = await openBench()
  const { rows } = await bench.sql(
    "select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync",
  )
  await bench.close()
  expect(rows[0].version).toBeGreaterThanOrEqual(130_000)
  expect(rows[0].fsync).toBe('on')
  expect(inject('connectionString')).toContain('127.0.0.1')
  console.log(`PostgreSQL ${Math.floor(rows[0].version / 10_000)}`)
})
