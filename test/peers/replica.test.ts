/** A streaming replica that lags, offered in the place of the primary: at worst an error, never a second run (Debian's PostgreSQL 15). */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { retrysafe } from '../../dist/index.js'
import { type PostgresStore, postgres } from '../../dist/stores/postgres.js'
import { chooseAccount, underAccount } from '../../servers/account.js'
import { type PostgresServer, startPostgres } from '../../servers/postgres.js'
import { temporaryPostgres } from '../../servers/temporary.js'
import { beginRequest, claimRequest, freshKey, until } from '../postgres/harness.js'
import { missing } from './debian.js'

const reason = missing('/usr/lib/postgresql/15/bin/pg_basebackup', 'postgresql-15')

/** A copy of the primary that follows it. */
async function replicaOf(primary: PostgresServer, folder: string): Promise<PostgresServer> {
  const account = chooseAccount()
  chmodSync(folder, 0o711)
  if (account !== undefined) chownSync(folder, account.uid, account.gid)
  // It lies in the data directory, belongs to us, and is copied with it.
  chmodSync(primary.logFile, 0o644)
  const dataDirectory = join(folder, 'data')
  const bin = '/usr/lib/postgresql/15/bin/pg_basebackup'
  const how = ['--write-recovery-conf', '--checkpoint=fast', '--no-sync', '--wal-method=stream']
  execFileSync(
    bin,
    [...how, `--dbname=${primary.connectionString}`, `--pgdata=${dataDirectory}`],
    underAccount(account),
  )
  return startPostgres({ dataDirectory, binaries: 'installed', temporary: true })
}

describe.skipIf(reason !== undefined)(`a replica that lags (${reason ?? 'PostgreSQL 15'})`, () => {
  let primary: PostgresServer
  let replica: PostgresServer
  let folder: string
  let onPrimary: pg.Pool
  let onReplica: pg.Pool
  let sql: postgresJs.Sql

  beforeAll(async () => {
    primary = await temporaryPostgres({ binaries: 'installed', settings: { wal_level: 'replica' } })
    onPrimary = new pg.Pool({ connectionString: primary.connectionString })
    await postgres(onPrimary).migrate()
    await onPrimary.query('create table effect (key text)')
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'retrysafe-replica-')))
    replica = await replicaOf(primary, folder)
    onReplica = new pg.Pool({ connectionString: replica.connectionString })
    for (const pool of [onPrimary, onReplica]) pool.on('error', () => undefined)
    sql = postgresJs(replica.connectionString, { onnotice: () => undefined })
    // It has the tables, and from now on nothing that happens.
    await until(async () => (await tableOnReplica()) !== null)
    await onReplica.query('select pg_wal_replay_pause()')
  })

  afterAll(async () => {
    await Promise.all([onPrimary.end(), onReplica.end(), sql.end({ timeout: 1 })])
    await replica.stop('immediate')
    await primary.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function tableOnReplica(): Promise<unknown> {
    const { rows } = await onReplica.query(`select to_regclass('effect') as found`)
    return rows[0].found
  }

  const stores: readonly [string, () => PostgresStore<object>][] = [
    ['node-postgres', () => postgres(onReplica)],
    ['postgres.js', () => postgres(sql)],
  ]

  describe.each(stores)('over %s', (_client, open) => {
    test.each(['transaction', 'run'] as const)(
      'what the primary has done and the replica has not heard of is not done again (%s)',
      async (mode) => {
        const intent = { scope: 's', key: freshKey() }
        const done = retrysafe({ store: postgres(onPrimary) })
        await done.transaction(intent, async ({ tx }) => {
          await tx.query('insert into effect values ($1)', [intent.key])
        })
        let runs = 0
        const again = retrysafe({ store: open() })[mode](intent, () => {
          runs += 1
        })
        await expect(again).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503 })
        expect(runs).toBe(0)
      },
    )

    test('no claim is granted and no end is read there', async () => {
      const store = open()
      const request = beginRequest(freshKey())
      await expect(store.transactions.begin(request)).rejects.toThrow('during recovery')
      await expect(store.claim(claimRequest(freshKey()))).rejects.toMatchObject({ code: '25006' })
      await expect(store.transactions.readBack(request.identity, Date.now())).rejects.toThrow(
        'during recovery',
      )
    })
  })
})
