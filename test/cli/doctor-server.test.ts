/** What the doctor says about settings of a whole server, its replicas, and a standby: on servers of its own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Finding } from 'retrysafe'
import { expect, test } from 'vitest'
import type { PostgresServer } from '../../servers/postgres.js'
import { temporaryPostgres } from '../../servers/temporary.js'
import { until } from '../setup/until.js'
import { retrysafe } from './run.js'

async function complaintsOf(server: PostgresServer): Promise<readonly string[]> {
  const { json } = await retrysafe(['doctor', '--json'], { url: server.connectionString })
  const { findings } = json<{ findings: readonly Finding[] }>()
  return findings.filter(({ level }) => level !== 'ok').map(({ level, id }) => `${level} ${id}`)
}

async function asked(server: PostgresServer, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: server.connectionString })
  await client.connect()
  return client
    .query(text)
    .then(
      ({ rows }) => rows,
      () => [],
    )
    .finally(() => client.end())
}

/** What PostgreSQL says by default about limits that are off. */
const usual = ['note idle-in-transaction', 'note keepalives']

test('a server that does not write to disk, and waits for no standby it has named, is told', async () => {
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    autovacuum: 'off',
    synchronous_standby_names: 'nobody',
    synchronous_commit: 'local',
  }
  const server = await temporaryPostgres({ settings })
  try {
    expect((await retrysafe(['migrate'], { url: server.connectionString })).code).toBe(0)
    expect(await complaintsOf(server)).toEqual([
      'warn synchronous-commit',
      'error fsync',
      'error full-page-writes',
      ...usual,
      'warn autovacuum',
    ])
  } finally {
    await server.stop()
  }
})

test('a replica that nobody waits for is a note', async () => {
  const server = await temporaryPostgres({ settings: { wal_level: 'replica' } })
  const replica = new pg.Client({ connectionString: `${server.connectionString}?replication=true` })
  replica.on('error', () => undefined)
  try {
    await retrysafe(['migrate'], { url: server.connectionString })
    await replica.connect()
    const { rows } = await replica.query('IDENTIFY_SYSTEM')
    // Streams like a replica and confirms nothing; it never comes to an end.
    replica.query(`START_REPLICATION PHYSICAL ${rows[0].xlogpos}`).catch(() => undefined)
    const streaming = `select 1 from pg_stat_replication where state = 'streaming'`
    await until(async () => (await asked(server, streaming)).length > 0, 'streaming')
    expect(await complaintsOf(server)).toEqual(['note failover', ...usual])
  } finally {
    await server.stop()
  }
})

test('a standby is an error, because it takes no claims', async () => {
  const server = await temporaryPostgres()
  try {
    await retrysafe(['migrate'], { url: server.connectionString })
    // Without a primary to follow it stays in recovery, as a replica does.
    writeFileSync(join(server.dataDirectory, 'standby.signal'), '', { mode: 0o666 })
    await server.restart()
    expect(await complaintsOf(server)).toEqual(['error primary', ...usual])
  } finally {
    await server.stop()
  }
})
