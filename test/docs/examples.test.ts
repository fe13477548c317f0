/** The examples in README, docs/ and TSDoc: all of them compile against the built package, and those marked `run` do what their page says. */
import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PGlite } from '@electric-sql/pglite'
import express from 'express'
import pg from 'pg'
import { reply, retrysafe } from 'retrysafe'
import { idempotent } from 'retrysafe/express'
import { postgres } from 'retrysafe/postgres'
import type { Faults, Once } from 'retrysafe/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { allBlocks, read } from './blocks.js'
import { type Compiled, compile } from './compile.js'
import { abandoned, authenticate, instanceOn, post, providerOf, useByDefault } from './reader.js'

const blocks = allBlocks()
let compiled: Compiled

beforeAll(async () => {
  compiled = await compile(blocks)
})

afterAll(() => compiled?.remove())

test('every example compiles against the built package', () => {
  expect(blocks.length).toBeGreaterThan(20)
  expect(compiled.complaints).toBe('')
})

describe('examples that run', () => {
  let database: FreshDatabase
  let pool: pg.Pool
  let servers: Server[]
  /** References the provider was charged under, in order; it knows each once. */
  let charges: string[]

  beforeEach(async () => {
    servers = []
    charges = []
    database = await freshDatabase()
    useByDefault(database.connectionString)
    pool = new pg.Pool()
    pool.on('error', () => undefined)
    for (const table of [
      'orders (id bigserial, customer_id text)',
      'payments (order_id text, charge_id text)',
    ])
      await pool.query(`create table ${table}`)
    await pool.query('create table outbox (address text)')
    Object.assign(globalThis, { authenticate, pool, provider: providerOf(charges), user: { id: 'alice' } })
  })

  afterEach(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    await pool.end()
    await database.drop()
  })

  async function count(table: string): Promise<number> {
    const { rows } = await pool.query(`select count(*)::int as n from ${table}`)
    return rows[0].n
  }

  async function listen(handler: RequestListener): Promise<string> {
    const server = createServer(handler)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  }

  /** A provider that knows each key once, and breaks off its first answer. */
  async function openProvider(): Promise<{ url: string; charged: ReadonlySet<unknown> }> {
    const charged = new Set<unknown>()
    const url = await listen((request, response) => {
      const first = charged.size === 0
      charged.add(request.headers['idempotency-key'])
      if (first) return void request.socket.destroy()
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: `ch-${charged.size}` }))
    })
    return { url, charged }
  }

  async function useInstance(): Promise<ReturnType<typeof instanceOn>> {
    const safe = instanceOn(pool)
    await postgres(pool).migrate()
    Object.assign(globalThis, { safe })
    return safe
  }

  test('README: five at once make one order, and a retry is the first reply', async () => {
    const { app } = await compiled.run<Served>('readme')
    const url = `${await listen(app)}/orders`
    const key = randomUUID()
    const five = await Promise.all(Array.from({ length: 5 }, () => post(url, key, { customerId: 'c1' })))
    expect(five.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect(five.every(({ status }) => status === 201 || status === 409)).toBe(true)
    const [first] = five.filter(({ status }) => status === 201)
    const retry = await post(url, key, { customerId: 'c1' })
    expect(retry).toMatchObject({ status: 201, replayed: true, body: first?.body })
    expect(await count('orders')).toBe(1)
    expect(await post(url, key, { customerId: 'c2' })).toMatchObject({ status: 422 })
    expect(await post(url, undefined, { customerId: 'c1' })).toMatchObject({ status: 400 })
    expect(await count('orders')).toBe(1)
  })

  test('README: a payment in lease mode charges once, writes once, and is replayed', async () => {
    await postgres(pool).migrate()
    const app = express().use(express.json())
    Object.assign(globalThis, { app, safe: retrysafe({ store: postgres(pool), scope: 'alice' }) })
    await compiled.run('readme-lease')
    const url = `${await listen(app)}/payments`
    const first = await post(url, 'k1', { orderId: 'o1' })
    expect(first).toMatchObject({ status: 201, replayed: false, body: '{"chargeId":"ch-1"}' })
    expect(await post(url, 'k1', { orderId: 'o1' })).toEqual({ ...first, replayed: true })
    expect(charges).toEqual(['alice:k1'])
    expect(await count('payments')).toBe(1)
  })

  test('modes: a retry in transaction mode is the first value, and there is one order', async () => {
    const { first, retry } = await compiled.run<Answers>('modes-transaction')
    expect(first).toMatchObject({ replayed: false, value: { orderId: expect.anything() } })
    expect(retry).toEqual({ ...first, replayed: true })
    expect(await count('orders')).toBe(1)
  })

  test('modes: a retry in lease mode charges once and writes once', async () => {
    const { pay, value } = await compiled.run<Paying>('modes-lease')
    const again = await pay('k2', { orderId: 'o1', amountCents: 4000 })
    expect(again).toEqual({ value, replayed: true })
    expect(charges).toEqual(['alice:k2'])
    expect(await count('payments')).toBe(1)
  })

  test('modes: inside a transaction of the caller, twice, there is one row', async () => {
    await useInstance()
    await compiled.run('modes-within')
    await compiled.run('modes-within')
    expect(await count('outbox')).toBe(1)
  })

  test('keys: the order of members does not count, a changed amount does', async () => {
    await useInstance()
    expect(await compiled.run('keys-fingerprint')).toMatchObject({
      reordered: { replayed: true },
      code: 'KEY_REUSED',
    })
  })

  test('failures: what was rolled back runs again, once', async () => {
    await useInstance()
    const { crashed, retry, again } = await compiled.run<Answers>('failures-rollback')
    expect(crashed).toMatchObject({ message: 'the machine went away' })
    expect(retry).toEqual({ value: 'paid', replayed: false })
    expect(again).toEqual({ value: 'paid', replayed: true })
    expect(await count('payments')).toBe(1)
  })

  test('http: a reply handler, an existing handler, a refused body that costs no key, and the pages', async () => {
    const sent: unknown[] = []
    Object.assign(globalThis, { mailer: { send: async (mail: unknown) => sent.push(mail) } })
    const { app } = await compiled.run<Served>('http-express')
    const url = await listen(app)
    const key = randomUUID()
    expect(await post(`${url}/orders`, key, {})).toMatchObject({ status: 400 })
    const first = await post(`${url}/orders`, key, { customerId: 'c1' })
    const retry = await post(`${url}/orders`, key, { customerId: 'c1' })
    expect(retry).toEqual({ ...first, replayed: true })
    expect(first).toMatchObject({ status: 201, location: expect.stringMatching(/^\/orders\/\d+$/) })
    expect(await post(`${url}/mails`, 'm1', { to: 'ada' })).toMatchObject({ status: 202, replayed: false })
    expect(await post(`${url}/mails`, 'm1', { to: 'ada' })).toMatchObject({ status: 202, replayed: true })
    expect(sent).toEqual([{ to: 'ada' }])
    const refused = await post(`${url}/mails`, undefined, {})
    const page = await fetch(url + JSON.parse(refused.body).type)
    expect([refused.status, page.status]).toEqual([400, 200])
    expect(await (await fetch(`${url}/.well-known/retrysafe`)).json()).toMatchObject({
      header: 'Idempotency-Key',
    })
  })

  test('http: a payment whose provider charged and did not answer is the same charge in the retry', async () => {
    const { url: providerUrl, charged } = await openProvider()
    Object.assign(globalThis, { providerUrl })
    const { app } = await compiled.run<Served>('http-payments')
    const url = `${await listen(app)}/payments`
    const key = randomUUID()
    const payment = { orderId: 'o1', amountCents: 4000 }
    expect(await post(url, key, payment)).toMatchObject({ status: 500, replayed: false })
    const retry = await post(url, key, payment)
    expect(retry).toMatchObject({ status: 201, replayed: false, body: '{"chargeId":"ch-1"}' })
    expect(await post(url, key, payment)).toEqual({ ...retry, replayed: true })
    expect(charged.size).toBe(1)
    expect(await count('payments')).toBe(1)
  })

  test('http: the client sends one key until there is an answer', async () => {
    const keys: unknown[] = []
    const url = await listen((request, response) => {
      keys.push(request.headers['idempotency-key'])
      if (keys.length === 1) return void request.socket.destroy()
      const busy = keys.length === 2
      response.writeHead(busy ? 409 : 201, busy ? { 'retry-after': '0' } : {}).end()
    })
    Object.assign(globalThis, { url })
    const { response } = await compiled.run<{ response: Response }>('http-client')
    expect(response).toMatchObject({ status: 201 })
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
  })

  test('http: a fetch-style route answers a retry with its first reply', async () => {
    const { first, again } = await compiled.run<{ first: Response; again: Response }>('http-fetch')
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await again.text()).toBe(await first.text())
  })

  test('docs/stores.md: a store says what it survives', async () => {
    expect(await compiled.run('stores-guarantees')).toMatchObject({ names: ['memory'] })
  })

  test('postgres: over postgres.js an order and its message commit together', async () => {
    await postgres(pool).migrate()
    const { value } = await compiled.run<{ value: unknown }>('postgres-js')
    expect(value).toEqual({ orderId: expect.anything() })
    expect([await count('orders'), await count('outbox')]).toEqual([1, 1])
  })

  test('postgres: over PGlite a retry is the first value, and memory is told from a disk', async () => {
    const { db, ...seen } = await compiled.run<OnPglite>('postgres-pglite')
    expect(seen).toMatchObject({ replayed: true, survivesCrash: false })
    expect((await db.query('select * from notes')).rows).toHaveLength(1)
    await db.close()
  })

  test('postgres: over a tool of its own a retry is the first value, and there is one order', async () => {
    await postgres(pool).migrate()
    const { first, retry } = await compiled.run<Answers>('postgres-tool')
    expect(first).toEqual({ value: 'placed', replayed: false })
    expect(retry).toEqual({ ...first, replayed: true })
    expect(await count('orders')).toBe(1)
  })

  test('postgres: the second migration has nothing to do', async () => {
    const own = await compiled.run<{ pool: pg.Pool; ran: string[]; none: string[] }>('postgres-migrate')
    expect([own.ran, own.none]).toEqual([['0001_intent'], []])
    await own.pool.end()
  })

  test('cli: a server that keeps the promise has no error', async () => {
    const { findings, wrong } = await compiled.run<{ findings: unknown[]; wrong: unknown[] }>('cli-inspect')
    expect(findings.length).toBeGreaterThan(20)
    expect(wrong).toEqual([])
  })

  test('operating: one claim and one replay are counted', async () => {
    await useInstance()
    const { counts } = await compiled.run<{ counts: Map<string, number> }>('operating-events')
    expect(Object.fromEntries(counts)).toEqual({ claimed: 1, replayed: 1 })
  })

  test('operating: an unknown record is resolved by what the provider says, or freed', async () => {
    const safe = await useInstance()
    charges.push('alice:charged')
    for (const key of ['charged', 'free']) await abandoned(safe, pool, key)
    await compiled.run('operating-unknown')
    const again = (key: string) => safe.run({ scope: 'alice', key }, () => 'ran')
    expect(await again('charged')).toEqual({ value: { chargeId: 'ch-1' }, replayed: true })
    expect(await again('free')).toEqual({ value: 'ran', replayed: false })
  })

  test('operating: what a caller is not told is in the log', async () => {
    const safe = await useInstance()
    const { log } = await compiled.run<{ log: string[] }>('operating-errors')
    const app = express().post(
      '/x',
      idempotent(safe, { scope: () => '' }, () => reply(200)),
    )
    expect(await post(`${await listen(app)}/x`, 'k1', {})).toMatchObject({ status: 500 })
    expect(log).toEqual([expect.stringMatching(/^SCOPE_INVALID no record: /)])
  })

  test('operating: a request under way ends before the instance and the pool do', async () => {
    const safe = await useInstance()
    const own = new pg.Pool()
    let arrived: () => void = () => undefined
    let finish: () => void = () => undefined
    const underWay = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const app = express().post('/x', (_request, response) => {
      finish = () => void own.query('select 1').then(() => response.json({}))
      arrived()
    })
    Object.assign(globalThis, { app, safe, pool: own })
    const { server, stop } = await compiled.run<{ server: Server; stop(): Promise<void> }>('operating-stop')
    const { port } = server.address() as AddressInfo
    const answer = post(`http://127.0.0.1:${port}/x`, 'k1', {})
    await underWay
    const stopped = stop()
    finish()
    expect(await answer).toMatchObject({ status: 200 })
    await stopped
    expect([server.listening, own.ended]).toEqual([false, true])
  })

  test('testing: retention passes as the test moves the clock', async () => {
    const { first, retry, late } = await compiled.run<Answers>('testing-clock')
    expect([first, retry, late].map((answer) => answer?.replayed)).toEqual([false, true, false])
  })

  test('testing: five attempts at once and a retry are one effect', async () => {
    const { app } = await compiled.run<Served>('readme')
    Object.assign(globalThis, { url: `${await listen(app)}/orders` })
    const { once } = await compiled.run<{ once: Once }>('testing-once')
    expect(once.replays + once.inProgress).toBe(4)
    expect(await count('orders')).toBe(1)
  })

  test('testing: a write past tx passes the concurrent test, unless it knows the instance', async () => {
    await useInstance()
    const told = await compiled.run<{ content: Once; complaint: unknown }>('testing-unused')
    expect(told.content.replays + told.content.inProgress).toBe(4)
    expect(told.complaint).toMatchObject({ message: expect.stringContaining('without having used tx') })
  })

  test('orms: a write past tx stands although the transaction was rolled back', async () => {
    await postgres(pool).migrate()
    const { complaint } = await compiled.run<{ complaint: unknown }>('orms-through-tx')
    expect(complaint).toMatchObject({ message: expect.stringContaining('the work wrote past tx') })
    expect(await count('orders')).toBe(2)
  })

  test('testing: a commit whose answer was lost is read back', async () => {
    await useInstance()
    const { answer, faults } = await compiled.run<{ answer: unknown; faults: Faults }>('testing-faults')
    expect(answer).toEqual({ value: 'placed', replayed: false })
    expect(faults.fired()).toBe(1)
    expect(await count('orders')).toBe(1)
  })

  test('testing: a connection that is cut at every message leaves one order for each key', async () => {
    await useInstance()
    const { findings, attempts } = await compiled.run<CutLog>('testing-cuts')
    expect(findings).toEqual([])
    expect(await count('orders')).toBe(attempts.length / 2 + 1)
  })

  test('every marked example has a test', () => {
    const marked = blocks.flatMap(({ run }) => run ?? [])
    expect(new Set(marked).size).toBe(marked.length)
    const here = read('test/docs/examples.test.ts') + read('test/bench/bench.test.ts')
    expect(marked.filter((name) => !here.includes(`('${name}')`))).toEqual([])
  })
})

/** What an example declares, as far as its test looks at it. */
interface OnPglite {
  db: PGlite
  replayed: boolean
  survivesCrash: boolean
}

type Answers = Readonly<Record<string, { readonly value: unknown; readonly replayed: boolean }>>
interface Served {
  readonly app: RequestListener
}
interface CutLog {
  readonly findings: readonly unknown[]
  readonly attempts: readonly unknown[]
}
interface Paying {
  readonly value: unknown
  pay(key: string, input: object): Promise<unknown>
}
