import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { chooseAccount, underAccount } from '../../servers/account.js'
import type { BinarySource } from '../../servers/binaries.js'
import {
  installedPostgres,
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
} from '../../servers/postgres.js'
import { isRunning } from '../../servers/postmaster.js'
import { temporaryPostgres } from '../../servers/temporary.js'

const isRoot = process.getuid?.() === 0
let folder: string
let dataDirectory: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'retrysafe-postgres-test-'))
  chmodSync(folder, 0o711)
  dataDirectory = join(folder, 'data')
})

/** Last in, first out: servers stop before their folder goes. */
const endings: (() => unknown)[] = []

function atEnd(ending: () => unknown): void {
  endings.unshift(ending)
}

afterEach(async () => {
  for (const ending of endings.splice(0)) await ending()
  rmSync(folder, { recursive: true, force: true })
})

async function ask(connectionString: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  return (await client.query(text).finally(() => client.end())).rows
}

/** Starts a server that ends with the test. */
async function start(options: Partial<PostgresOptions> = {}): Promise<PostgresServer> {
  const server = await startPostgres({ dataDirectory, temporary: true, ...options })
  atEnd(() => server.stop('immediate'))
  return server
}

/** A process that starts a server and can be killed. */
function spawnOwner(): ChildProcess {
  const owner = spawn(process.execPath, ['build/test/processes/postgres-owner.js', dataDirectory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  atEnd(() => owner.kill('SIGKILL'))
  return owner
}

async function saidBy(owner: ChildProcess): Promise<{ pid: number; port: number }> {
  if (owner.stdout === null) throw new Error('the owner has no output')
  const [line] = await once(createInterface({ input: owner.stdout }), 'line')
  return JSON.parse(line)
}

async function killOwner(owner: ChildProcess): Promise<void> {
  const ended = once(owner, 'exit')
  owner.kill('SIGKILL')
  await ended
}

const sources: [BinarySource, boolean][] = [
  ['embedded', true],
  ['installed', installedPostgres() !== undefined],
]

describe.each(sources)('a PostgreSQL that is %s', (binaries, isPresent) => {
  test.skipIf(!isPresent)(
    'keeps what was committed over stop, restart, immediate stop and SIGKILL',
    async () => {
      const server = await start({ binaries })
      const orders = await server.createDatabase('orders')
      await ask(orders, 'create table t (n integer)')
      const ends = [
        () => server.stop(),
        () => server.stop('immediate'),
        () => server.kill(),
        () => server.restart(),
      ]
      for (const [n, end] of ends.entries()) {
        await ask(orders, `insert into t values (${n})`)
        await end()
        await server.start()
      }
      expect(await ask(orders, 'select n from t order by n')).toEqual([
        { n: 0 },
        { n: 1 },
        { n: 2 },
        { n: 3 },
      ])
      expect(await server.createDatabase('orders')).toBe(orders)
    },
  )

  test.skipIf(!isPresent)(
    'is durable, listens on loopback only, and lets nobody in without the password',
    async () => {
      const server = await start({ binaries, settings: { max_connections: '17' } })
      const [row] = await ask(
        server.connectionString,
        `select current_setting('fsync') as fsync, current_setting('listen_addresses') as listens,
        current_setting('unix_socket_directories') as sockets, current_setting('max_connections') as connections,
        current_setting('server_encoding') as encoding`,
      )
      expect(row).toEqual({
        fsync: 'on',
        listens: '127.0.0.1',
        sockets: '',
        connections: '17',
        encoding: 'UTF8',
      })
      expect(statSync(join(dataDirectory, 'retrysafe.password')).mode & 0o777).toBe(0o600)
      const stranger = `postgresql://postgres:wrong@127.0.0.1:${server.port}/postgres`
      await expect(ask(stranger, 'select 1')).rejects.toMatchObject({ code: '28P01' })
    },
  )
})

test('a server left over by a killed owner is adopted', async () => {
  const owner = spawnOwner()
  const { pid, port } = await saidBy(owner)
  await killOwner(owner)
  const lines: string[] = []
  const server = await start({ log: (line) => lines.push(line) })
  expect({ pid: server.pid, port: server.port }).toEqual({ pid, port })
  expect(lines.join()).toContain('used again')
  expect(await ask(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('an owner killed while it makes the cluster leaves nothing in the way', async () => {
  const owner = spawnOwner()
  // Its first sign is the directory beside the place, in which initdb then works.
  await vi.waitUntil(() => readdirSync(folder).some((name) => name.startsWith('data.new-')), { interval: 1 })
  await killOwner(owner)
  expect(existsSync(dataDirectory)).toBe(false)
  const server = await start()
  expect(await ask(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('an owner killed while the server starts leaves a server that is adopted', async () => {
  const owner = spawnOwner()
  await vi.waitUntil(() => existsSync(join(dataDirectory, 'postmaster.pid')), {
    interval: 1,
    timeout: 30_000,
  })
  await killOwner(owner)
  const server = await start()
  expect(await ask(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('of processes that start at once, one starts the server and the others use it', async () => {
  const said = await Promise.all([spawnOwner(), spawnOwner(), spawnOwner()].map(saidBy))
  const server = await start()
  expect(said).toEqual(said.map(() => ({ pid: server.pid, port: server.port })))
  expect(readdirSync(folder)).toEqual(['data'])
})

test('a process id that was given to another process after a crash is no obstacle', async () => {
  const server = await start()
  await ask(server.connectionString, 'create table t (n integer)')
  const file = join(dataDirectory, 'postmaster.pid')
  const content = readFileSync(file, 'utf8')
  await server.kill()
  // Same account as the server: PostgreSQL itself would take it for a running one.
  const other = spawn('/bin/sh', ['-c', 'read line'], { ...underAccount(chooseAccount()), stdio: 'pipe' })
  atEnd(() => other.kill())
  writeFileSync(file, content.replace(/^\d+/, String(other.pid)))
  await server.start()
  expect(await ask(server.connectionString, 'select count(*)::integer as n from t')).toEqual([{ n: 0 }])
  expect(isRunning(other.pid ?? 0)).toBe(true)
})

test('a directory with files of somebody else is refused and not touched', async () => {
  mkdirSync(dataDirectory)
  writeFileSync(join(dataDirectory, 'letter.txt'), 'dear')
  await expect(start()).rejects.toThrow(/Choose another data directory/)
  expect(readdirSync(dataDirectory)).toEqual(['letter.txt'])
})

test('a cluster that was never finished is put aside, and a new one is made', async () => {
  mkdirSync(join(dataDirectory, 'base'), { recursive: true })
  writeFileSync(join(dataDirectory, 'PG_VERSION'), '18\n')
  const lines: string[] = []
  const server = await start({ log: (line) => lines.push(line) })
  expect(await ask(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(lines.join()).toContain('was left unfinished')
})

test('a cluster that was used is never replaced, whatever is missing in it', async () => {
  const server = await start()
  await server.stop()
  rmSync(join(dataDirectory, 'retrysafe.password'))
  await expect(start()).rejects.toThrow(/is not a database cluster made by this project/)
  expect(existsSync(join(dataDirectory, 'base'))).toBe(true)
})

test('a taken port is an error that names the port', async () => {
  const rival = createServer()
  rival.listen(0, '127.0.0.1')
  await once(rival, 'listening')
  atEnd(() => rival.close())
  const address = rival.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await expect(start({ port })).rejects.toThrow(`Port ${port} on 127.0.0.1 is taken`)
})

test.skipIf(installedPostgres() === undefined)('a cluster of another major version is refused', async () => {
  const server = await start()
  await server.stop()
  await expect(start({ binaries: 'installed' })).rejects.toThrow(/was made by PostgreSQL 18/)
})

test.skipIf(!isRoot)(
  'a place that the account cannot reach is replaced by one that the next start finds',
  async () => {
    chmodSync(folder, 0o700)
    const lines: string[] = []
    const first = await start({ log: (line) => lines.push(line) })
    atEnd(() => rmSync(first.dataDirectory, { recursive: true, force: true }))
    await ask(first.connectionString, 'create table t (n integer)')
    await first.stop()
    const second = await start()
    expect(second.dataDirectory).toBe(first.dataDirectory)
    expect(await ask(second.connectionString, 'select count(*)::integer as n from t')).toEqual([{ n: 0 }])
    expect(lines.join()).toContain(`cannot reach ${dataDirectory}; its data is in ${first.dataDirectory}`)
  },
)

test('a temporary server leaves nothing behind', async () => {
  const server = await temporaryPostgres()
  const { pid, dataDirectory: directory } = server
  await server.stop()
  expect(isRunning(pid ?? 0)).toBe(false)
  expect(existsSync(join(directory, '..'))).toBe(false)
})
