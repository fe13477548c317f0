/** A quick run of `npm run bench -- stores`: every store is there and can be compared. Throughput is not judged. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { uuidKey } from '../../bench/keys.js'
import { contenderOf } from '../../bench/scenario.js'
import { memoryBench } from '../../bench/stores/memory.js'
import { storesMarkdown } from '../../bench/stores/report.js'
import { missingFor, type StoresRun } from '../../bench/stores/run.js'
import { scenariosOf } from '../../bench/stores/scenarios.js'
import { mariadbProgram } from '../../servers/mariadb.js'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'

const program = join(import.meta.dirname, '../../build/bench/main.js')
const bench = (...parameters: string[]) => promisify(execFile)(process.execPath, [program, ...parameters])

const both = [
  ...['bare-transaction', 'transaction', 'bare-work', 'lease'],
  ...['read', 'replay-transaction', 'replay-lease'],
]
const leaseOnly = ['bare-work', 'lease', 'read', 'replay-lease']
const stores = [
  { store: 'postgres', clients: ['node-postgres', 'postgres-js'], scenarios: both },
  {
    store: 'mysql',
    clients: ['mysql2', 'mariadb'],
    scenarios: both,
    reason: missing(mariadbProgram, 'mariadb-server'),
  },
  { store: 'sqlite', clients: ['better-sqlite3-opened', 'better-sqlite3-shared'], scenarios: both },
  {
    store: 'redis',
    clients: ['ioredis', 'node-redis'],
    scenarios: leaseOnly,
    reason: missing(redisProgram, 'redis-server'),
  },
  { store: 'memory', clients: ['memory'], scenarios: both },
]
const present = stores.filter(({ reason }) => reason === undefined).map(({ store }) => store)

let run: StoresRun

beforeAll(async () => {
  const { stdout } = await bench('stores', '--quick', '--json', '--only', present.join())
  run = JSON.parse(stdout)
}, 300_000)

describe.each(stores)('$store', ({ store, clients, scenarios, reason }) => {
  test.skipIf(reason !== undefined)('is compared with its bare work, over each of its clients', () => {
    // node:sqlite is there or not, as Node is old or new.
    const own = run.compared.filter((one) => one.store === store && !one.client.startsWith('node-sqlite'))
    const wanted = clients.flatMap((client) => scenarios.map((scenario) => `${client}-${scenario}`))
    for (const concurrency of [1, 8]) {
      const ids = own.filter((one) => one.concurrency === concurrency).map(({ id }) => id)
      expect(ids.sort()).toEqual([...wanted].sort())
    }
  })
})

test('every ratio is a number, and 1 for a bare way', () => {
  for (const { id, bare, ratio, cpu, perSecond } of run.compared) {
    const numbers = [ratio.low, ratio.median, ratio.high, cpu.low, cpu.median, cpu.high, perSecond]
    expect(
      numbers.every((number) => Number.isFinite(number) && number >= 0),
      id,
    ).toBe(true)
    if (id === bare) expect(ratio).toEqual({ low: 1, median: 1, high: 1 })
    else expect(ratio.low, id).toBeGreaterThan(0)
  }
})

test('node:sqlite is compared, or the output says why it was left out', () => {
  const clients = ['node-sqlite-opened', 'node-sqlite-shared']
  const compared = new Set(run.compared.map(({ client }) => client))
  const unexplained = clients.filter(
    (client) => !compared.has(client) && !run.leftOut.some((line) => line.startsWith(`${client}: `)),
  )
  expect(unexplained).toEqual([])
  for (const line of run.leftOut) expect(storesMarkdown(run)).toContain(line)
})

test('the table names every scenario of every client', () => {
  const text = storesMarkdown(run)
  expect(text).not.toMatch(/NaN|undefined/)
  for (const { client, title } of run.compared) {
    const table = text.split('\n\n').find((part) => part.startsWith(`| ${client} |`))
    expect(table, client).toContain(`| ${title} |`)
  }
})

test.each(['replay-transaction', 'replay-lease'])('a %s that is none is an error', async (wanted) => {
  const subject = await memoryBench.clients[0]?.open('', 1)
  if (subject === undefined) throw new Error('there is no client')
  const scenario = scenariosOf(subject, [uuidKey()]).find(({ id }) => id === wanted)
  if (scenario === undefined) throw new Error(`there is no ${wanted}`)
  await expect(contenderOf(scenario, subject, 1).run(1)).rejects.toThrow(
    'the work ran where a replay was to be measured',
  )
  await subject.close()
})

test('what is not installed is named, with how to install it', () => {
  const found = missingFor([
    {
      clients: [{ id: 'such', peers: ['mysql2', 'no-such-driver'], open: () => Promise.reject(new Error()) }],
      program: { path: '/no/such/server', debian: 'such-server' },
    },
  ])
  expect(found).toEqual([
    'not installed: no-such-driver; run npm ci --prefix test/peers',
    'no /no/such/server was found: install it (Debian: apt-get install such-server)',
  ])
})

test.each([
  { wrong: ['stores', '--only', 'mongodb'], said: 'no mongodb: --only takes postgres, node-postgres,' },
  { wrong: ['stores', '--check'], said: 'there are no targets for stores to --check' },
  { wrong: ['shops'], said: 'there is no bench shops, only stores' },
])('$wrong ends with code 2 and says what is wrong', async ({ wrong, said }) => {
  const ended = await bench(...wrong).catch((error: { code: number; stderr: string }) => error)
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(said) })
})
