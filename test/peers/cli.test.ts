/** The command line against the other stores, over every driver it looks for, each found in the project it is run in. */
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withSafe } from '../../dist/cli/store.js'
import type { Finding } from '../../dist/index.js'
import { mariadbProgram, startMariadb } from '../../servers/mariadb.js'
import { redisProgram, startRedis } from '../../servers/redis.js'
import { type Ran, retrysafe } from '../cli/run.js'
import { read } from '../docs/blocks.js'
import { claimRequest, freshKey } from '../postgres/harness.js'
import { until } from '../setup/until.js'
import { missing } from './debian.js'

interface Opened {
  readonly url: string
  stop(): Promise<void>
}

interface Kind {
  readonly store: string
  /** What the project has installed. */
  readonly driver: string
  readonly reason: string | undefined
  readonly migrates: boolean
  open(folder: string): Promise<Opened>
}

const mariadb = async (): Promise<Opened> => startMariadb()
const noMariadb = missing(mariadbProgram, 'mariadb-server')
const noRedis = missing(redisProgram, 'redis-server')

const kinds: readonly Kind[] = [
  { store: 'mysql', driver: 'mysql2', reason: noMariadb, migrates: true, open: mariadb },
  { store: 'mysql', driver: 'mariadb', reason: noMariadb, migrates: true, open: mariadb },
  { store: 'redis', driver: 'ioredis', reason: noRedis, migrates: false, open: () => startRedis() },
  { store: 'redis', driver: 'redis', reason: noRedis, migrates: false, open: () => startRedis() },
  {
    store: 'sqlite',
    driver: 'better-sqlite3',
    reason: undefined,
    migrates: true,
    open: async (folder) => ({ url: `sqlite:${join(folder, 'orders.db')}`, stop: async () => undefined }),
  },
]

/** A project in which one driver is installed and no other. */
function projectWith(driver: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'retrysafe-cli-')))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(import.meta.dirname, 'node_modules', driver), join(folder, 'node_modules', driver))
  return folder
}

describe.each(kinds)('$store by URL over $driver', (kind) => {
  describe.skipIf(kind.reason !== undefined)(kind.reason ?? 'a real one', () => {
    let project: string
    let opened: Opened

    beforeAll(async () => {
      project = projectWith(kind.driver)
      opened = await kind.open(project)
      if (kind.migrates)
        expect((await cli('migrate', '--json')).json()).toEqual({ migrated: ['0001_intent'] })
    })

    afterAll(async () => {
      await opened.stop()
      rmSync(project, { recursive: true, force: true })
    })

    function cli(...words: string[]): Promise<Ran> {
      return retrysafe(words, { url: opened.url, cwd: project })
    }

    /** A record whose owner went away, and that its next attempt gave up on; its generation. */
    async function unknown(key: string): Promise<string> {
      const world = { cwd: project, env: { DATABASE_URL: opened.url }, words: [] }
      return withSafe({ values: {}, positionals: [], world }, async (_, store) => {
        const request = claimRequest(key, { leaseMs: 1 })
        const answer = await store.claim(request)
        if (!answer.claimed) throw new Error('the key was not fresh')
        const { generation } = answer
        const { identity, owner } = request
        await until(() => store.abandon({ identity, owner, generation, retainMs: 60_000 }))
        return String(generation)
      })
    }

    test('a doctor finds no error in it', async () => {
      const { code, json } = await cli('doctor', '--json')
      const { store, findings } = json<{ store: string; findings: readonly Finding[] }>()
      expect([code, store]).toEqual([0, kind.store])
      expect(findings.filter(({ level }) => level === 'error')).toEqual([])
      const page = read('docs/cli.md')
      expect(findings.map(({ id }) => id).filter((id) => !page.includes(`\`${id}\``))).toEqual([])
    })

    test('a doctor counts what waits, and names no key', async () => {
      const key = freshKey()
      await unknown(key)
      const { json, stdout } = await cli('doctor', '--json')
      const { findings } = json<{ findings: readonly Finding[] }>()
      expect(findings).toContainEqual(expect.objectContaining({ id: 'unknown-records', level: 'warn' }))
      expect(stdout).not.toContain(key)
      expect((await cli('doctor', '--strict')).code).toBe(1)
    })

    test('an unknown record is listed, shown, not decided about by another generation, and resolved', async () => {
      const key = freshKey()
      const name = ['--scope', 'tenant', '--key', key]
      const generation = await unknown(key)
      const listed = await cli('list', '--state', 'unknown', '--json')
      const { records } = listed.json<{ records: readonly object[] }>()
      expect(records).toContainEqual(expect.objectContaining({ key, scope: 'tenant', state: 'unknown' }))
      const older = String(Number(generation) - 1)
      const refused = await cli('release', ...name, '--generation', older)
      expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining(generation)])
      const done = ['--generation', generation, '--done', '--value', '{"chargeId":1}', '--json']
      expect((await cli('resolve', ...name, ...done)).json()).toMatchObject({ resolved: true })
      const shown = await cli('show', ...name, '--outcome', '--json')
      expect(shown.json()).toMatchObject({ record: { state: 'done', outcome: { value: { chargeId: 1 } } } })
    })

    test('a server that is not there is told as what it is, without the password', async () => {
      if (kind.store === 'sqlite') return
      const url = `${kind.driver === 'mariadb' ? 'mariadb' : kind.store}://someone:hush@127.0.0.1:1/0`
      const { code, stdout, stderr } = await retrysafe(['list', '--json'], { url, cwd: project })
      expect([code, stderr]).toEqual([2, ''])
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } })
      expect(stdout).toContain('ECONNREFUSED')
      expect(stdout).not.toContain('hush')
    })

    test('a server that takes the connection and says nothing is not waited for without end', async () => {
      if (kind.store !== 'redis') return
      const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
      await once(silent, 'listening')
      const { port } = silent.address() as AddressInfo
      const url = `redis://127.0.0.1:${port}`
      const { code, stdout } = await retrysafe(['list', '--json'], { url, cwd: project })
      expect([code, JSON.parse(stdout).error.code]).toEqual([2, 'STORE_UNAVAILABLE'])
      silent.close()
    })

    test('a database that Redis does not have is not answered for by another one', async () => {
      if (kind.store !== 'redis') return
      const { code, stdout } = await retrysafe(['list', '--json'], { url: `${opened.url}/99`, cwd: project })
      expect([code, stdout]).toEqual([2, expect.stringContaining('out of range')])
    })

    test('a project without a driver is told which to install', async () => {
      const { code, stdout } = await retrysafe(['list', '--json'], { url: opened.url, cwd: tmpdir() })
      const { error } = JSON.parse(stdout)
      // Later versions of Node bring a driver for SQLite of their own.
      if (kind.store === 'sqlite' && code === 0) return
      expect([code, error.code]).toEqual([2, 'DRIVER_MISSING'])
    })
  })
})

describe('sqlite by a file', () => {
  const project = projectWith('better-sqlite3')
  afterAll(() => rmSync(project, { recursive: true, force: true }))

  test('a file that is not there is not made by looking', async () => {
    const how = { url: './absent.db', cwd: project }
    for (const command of ['list', 'sweep', 'doctor']) {
      const { code, stdout } = await retrysafe([command, '--json'], how)
      expect([code, stdout]).toEqual([2, expect.stringContaining('there is no file')])
    }
    expect((await retrysafe(['migrate', '--json'], how)).json()).toEqual({ migrated: ['0001_intent'] })
    expect((await retrysafe(['list', '--json'], { ...how, url: 'sqlite:absent.db' })).code).toBe(0)
  })

  test('a database in memory is no file to migrate', async () => {
    const how = { url: 'sqlite::memory:', cwd: project }
    expect((await retrysafe(['migrate'], how)).code).toBe(2)
    expect(existsSync(join(project, ':memory:'))).toBe(false)
  })

  test('the journal that a file has is told, and not changed', async () => {
    const { default: Database } = await import('better-sqlite3')
    const file = join(project, 'other.sqlite')
    const db = new Database(file)
    db.exec('create table orders (id integer)')
    const { code, stdout } = await retrysafe(['doctor', '--json'], { url: `file://${file}`, cwd: project })
    expect(code).toBe(1)
    expect(JSON.parse(stdout).findings).toContainEqual(
      expect.objectContaining({ id: 'journal-mode', level: 'error' }),
    )
    expect(db.pragma('journal_mode', { simple: true })).toBe('delete')
    db.close()
  })
})

test.each(['mysql', 'sqlite'])('the SQL for %s is printed without a driver', async (dialect) => {
  const { code, stdout } = await retrysafe(['sql', '--dialect', dialect], { cwd: tmpdir() })
  expect([code, stdout]).toEqual([0, expect.stringContaining('create table')])
})
