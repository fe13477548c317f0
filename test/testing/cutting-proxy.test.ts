/** The cutting proxy does what its plan says, at the message it names, and nothing else. */
import pg from 'pg'
import { type CutPlan, type CuttingProxy, cuttingProxy } from 'retrysafe/testing'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'

let database: FreshDatabase
let proxy: CuttingProxy
let outside: pg.Pool
const clients: pg.Client[] = []

beforeAll(async () => {
  database = await freshDatabase()
  outside = new pg.Pool({ connectionString: database.connectionString })
  await outside.query('create table note (text text)')
  proxy = await cuttingProxy({ port: Number(new URL(database.connectionString).port) })
})

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => undefined)))
})

afterAll(async () => {
  await proxy.close()
  await outside.end()
  await database.drop()
})

async function connected(): Promise<pg.Client> {
  const url = new URL(database.connectionString)
  url.port = String(proxy.port)
  const client = new pg.Client({ connectionString: url.href })
  client.on('error', () => undefined)
  await client.connect()
  clients.push(client)
  return client
}

async function notes(): Promise<string[]> {
  const { rows } = await outside.query('select text from note order by text')
  return rows.map(({ text }) => text)
}

const insert = (client: pg.Client, text: string) => client.query(`insert into note values ('${text}')`)

test('a clean run names every message of every connection in order', async () => {
  const run = proxy.run()
  const client = await connected()
  await client.query('select $1::text', ['x'])
  await client.query('select 2')
  await client.end()
  // Passwords, if the server asks for any.
  const types = run
    .messages()
    .map(({ type }) => type)
    .filter((type) => type !== 'p')
  expect(types).toEqual(['startup', 'P', 'B', 'D', 'E', 'S', 'Q'])
  expect(run.messages().every(({ number }, index) => number === index + 1)).toBe(true)
  expect(run.messages().map(({ text }) => text)).toContain('select $1::text')
  expect(run.messages().at(-1)?.text).toBe('select 2')
  expect(run.fired()).toBe(false)
})

test('a message that is cut before never reaches the server; one that is cut after has its effect', async () => {
  for (const act of ['cutBefore', 'cutAfter'] as const) {
    const client = await connected()
    const run = proxy.run({ at: 2, act })
    await insert(client, `${act}-1`)
    await expect(insert(client, `${act}-2`)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(run.fired()).toBe(true)
    await proxy.settled()
  }
  expect(await notes()).toEqual(['cutAfter-1', 'cutAfter-2', 'cutBefore-1'])
})

async function held(plan: CutPlan, text: string) {
  const client = await connected()
  const run = proxy.run(plan)
  const answer = insert(client, text)
  const ended = answer.then(
    () => 'answered',
    () => 'lost',
  )
  await run.reached
  return { run, ended, client }
}

test('a held connection stands still until it is let go, before the message or behind it', async () => {
  const before = await held({ at: 1, act: 'holdBefore' }, 'held-before')
  expect(await notes()).not.toContain('held-before')
  before.run.release('go')
  expect(await before.ended).toBe('answered')
  const after = await held({ at: 1, act: 'holdAfter' }, 'held-after')
  await expect.poll(notes).toContain('held-after')
  after.run.release('cut')
  expect(await after.ended).toBe('lost')
})

test('what is held arrives late although its client has gone', async () => {
  const { run, client } = await held({ at: 1, act: 'holdBefore' }, 'late')
  await client.end()
  run.release('go')
  await expect.poll(notes).toContain('late')
  await proxy.settled()
})

test('a hold ends by itself where the plan says so', async () => {
  const { ended } = await held({ at: 1, act: 'holdBefore', holdMs: 20, holdEnd: 'cut' }, 'never')
  expect(await ended).toBe('lost')
  await proxy.settled()
  expect(await notes()).not.toContain('never')
})

test('all connections can be paused, resumed and cut', async () => {
  const [one, two] = [await connected(), await connected()]
  proxy.run()
  proxy.pause()
  let answered = 0
  const answers = [one, two].map((client) => insert(client, 'paused').then(() => (answered += 1)))
  await outside.query('select pg_sleep(0.05)')
  expect(answered).toBe(0)
  proxy.resume()
  await Promise.all(answers)
  proxy.cut()
  await expect(insert(one, 'after the cut')).rejects.toThrow()
  await expect(insert(two, 'after the cut')).rejects.toThrow()
})

test('a server that is not there ends the connection', async () => {
  const nowhere = await cuttingProxy({ port: 1 })
  const client = new pg.Client({ host: nowhere.host, port: nowhere.port })
  await expect(client.connect()).rejects.toThrow()
  await nowhere.close()
})
