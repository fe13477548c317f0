/** Findings of the doctor on MariaDB, each provoked on a real server and seen; and a healthy one, of which nothing is to be said. */
import { type Connection, createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Finding } from '../../dist/index.js'
import { type Mariadb, mariadbProgram, startMariadb } from '../../servers/mariadb.js'
import { retrysafe } from '../cli/run.js'
import { missing } from './debian.js'

const reason = missing(mariadbProgram, 'mariadb-server')
const now = `timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))`

describe.skipIf(reason !== undefined)(`the doctor on MariaDB (${reason ?? 'a real one'})`, () => {
  let server: Mariadb
  let admin: Connection

  beforeAll(async () => {
    // Written to a log, so that its format can be wrong; the server's defaults are right in everything else.
    server = await startMariadb(['--log-bin', '--binlog-format=ROW', '--sync-binlog=1'])
    admin = await createConnection(server.url)
  })

  afterAll(async () => {
    await admin.end()
    await server.stop()
  })

  beforeEach(async () => {
    await admin.query('drop database if exists retrysafe')
    await retrysafe(['migrate'], how())
  })

  function how(url = server.url) {
    return { url, cwd: import.meta.dirname }
  }

  async function findings(url = server.url): Promise<readonly Finding[]> {
    const { code, json } = await retrysafe(['doctor', '--json'], how(url))
    const seen = json<{ verdict: string; findings: readonly Finding[] }>()
    expect(code).toBe(seen.verdict === 'error' ? 1 : 0)
    return seen.findings
  }

  async function complaints(url = server.url): Promise<readonly string[]> {
    return (await findings(url)).flatMap(({ level, id }) => (level === 'ok' ? [] : [`${level} ${id}`]))
  }

  test('a healthy store is all ok', async () => {
    expect(await complaints()).toEqual([])
  })

  const settings: readonly (readonly [string, string, string, string])[] = [
    ['error flush-log', 'innodb_flush_log_at_trx_commit', '0', '1'],
    ['warn flush-log', 'innodb_flush_log_at_trx_commit', '2', '1'],
    ['error primary', 'read_only', '1', '0'],
    ['error binary-log', 'binlog_format', `'STATEMENT'`, `'ROW'`],
    ['note binary-log', 'sync_binlog', '0', '1'],
    ['note isolation', 'tx_isolation', `'SERIALIZABLE'`, `'REPEATABLE-READ'`],
    ['note autocommit', 'autocommit', '0', '1'],
    ['warn max-packet', 'max_allowed_packet', '1048576', '16777216'],
  ]

  test.each(settings)('%s: %s = %s', async (complaint, name, wrong, right) => {
    await admin.query(`set global ${name} = ${wrong}`)
    try {
      expect(await complaints()).toEqual([complaint])
    } finally {
      await admin.query(`set global ${name} = ${right}`)
    }
  })

  const table = 'alter table retrysafe.retrysafe_intent'

  test.each([
    ['error migrations', 'drop table retrysafe.retrysafe_intent'],
    ['error migrations', 'drop database retrysafe'],
    ['error migrations', 'delete from retrysafe.retrysafe_migration'],
    ['warn migrations', `insert into retrysafe.retrysafe_migration (name) values ('9999_later')`],
    ['error unique-index', `${table} drop primary key`],
    ['error unique-index', `${table} drop primary key, add primary key (\`key\`)`],
    ['error unique-index', `${table} drop primary key, add primary key (\`key\`(8), scope)`],
    ['warn indexes', `${table} drop index sweep`],
    ['error collation', `${table} modify \`key\` varchar(255) character set utf8mb4 not null`],
    ['error engine', `${table} engine = Aria`],
  ])('%s: %s', async (complaint, statement) => {
    await admin.query(statement)
    expect(await complaints()).toEqual([complaint])
  })

  async function plant(state: number, count: number, minutes: number): Promise<void> {
    await admin.query(
      `insert into retrysafe.retrysafe_intent (\`key\`, scope, state, owner, generation, attempts, ends_at, fingerprint, outcome)
        select concat(?, '-', seq), 's', ?, unhex(replace(uuid(), '-', '')), seq, 1, ${now} - ? * 60000000, 0x01, 0x01
        from mysql.seq_1_to_${count}`,
      [state, state, minutes],
    )
  }

  test('overdue, left and waiting records are counted', async () => {
    await plant(3, 4, 90)
    await plant(1, 2, 90)
    await plant(4, 1, -90)
    const seen = await findings()
    const bad = seen.flatMap(({ level, id, found }) => (level === 'ok' ? [] : [`${level} ${id}: ${found}`]))
    expect(bad).toEqual([
      expect.stringMatching(/^warn sweeper: 4 records are .* the oldest by 1.5 h$/),
      expect.stringMatching(/^note left-lying: 2 records are unfinished/),
      'warn unknown-records: 1 unknown',
    ])
  })

  test.each([
    ['select, insert, update, delete', ['note migrations'], ''],
    ['select, insert, update', ['note migrations', 'error rights'], 'lacks DELETE'],
    [undefined, ['error rights'], 'lacks SELECT, INSERT, UPDATE, DELETE'],
  ])('an account that was granted %s', async (rights, expected, found) => {
    await admin.query(`create or replace user 'small'@'127.0.0.1' identified by 'hush'`)
    if (rights !== undefined)
      await admin.query(`grant ${rights} on retrysafe.retrysafe_intent to 'small'@'127.0.0.1'`)
    const url = new URL(server.url)
    url.username = 'small'
    url.password = 'hush'
    const seen = await findings(url.href)
    expect(seen.flatMap(({ level, id }) => (level === 'ok' ? [] : [`${level} ${id}`]))).toEqual(expected)
    expect(seen.find(({ id }) => id === 'rights')?.found).toContain(found)
    expect(JSON.stringify(seen)).not.toContain('hush')
  })
})
