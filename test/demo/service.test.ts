/** What `npm start` runs, driven from outside: what README and the printed lines say, and kills. */
import { execFile } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { read } from '../docs/blocks.js'
import { type Demo, demoFolder, removeFolder, startDemo } from './demo-process.js'

let folder: string
let demo: Demo

beforeAll(async () => {
  folder = demoFolder()
  demo = await startDemo(folder)
})

afterAll(async () => {
  // A demo that was killed has left its database running: another one adopts it and stops it.
  if (demo.process.exitCode !== null || demo.process.signalCode !== null) demo = await startDemo(folder)
  await demo.stop('SIGTERM')
  removeFolder(folder)
})

interface Told {
  readonly status: number
  readonly replayed: boolean
  readonly body: string
}

async function order(key: string | undefined, body: unknown, more: RequestInit = {}): Promise<Told> {
  const response = await fetch(`${demo.url}/orders`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer alice',
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    body: JSON.stringify(body),
    ...more,
  })
  const replayed = response.headers.get('idempotent-replayed') === 'true'
  return { status: response.status, replayed, body: await response.text() }
}

async function countOf(customerId: string): Promise<number> {
  const response = await fetch(`${demo.url}/orders?customerId=${customerId}`)
  return ((await response.json()) as { count: number }).count
}

async function form(fields: Record<string, string>): Promise<Response> {
  return fetch(`${demo.url}/orders`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams(fields),
  })
}

async function shell(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  return stdout
}

/** The commands that were printed, each with the line that says what it shows. */
function commands(): string[] {
  return [...demo.printed().matchAll(/^# .*\n((?:.+\n)+)/gm)].map(([, command = '']) => command)
}

test('five equal orders at once are one order, and a retry is its reply', async () => {
  const customerId = randomUUID()
  const key = randomUUID()
  const body = { customerId, totalCents: 4000 }
  const five = await Promise.all(Array.from({ length: 5 }, () => order(key, body)))
  expect(five.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
  expect(five.every(({ status }) => status === 201 || status === 409)).toBe(true)
  const first = five.find(({ status }) => status === 201)
  expect(await order(key, body)).toEqual({ status: 201, replayed: true, body: first?.body })
  expect(await countOf(customerId)).toBe(1)
})

test('another total under the key is 422, no key is 400, and one caller does not see another’s', async () => {
  const customerId = randomUUID()
  const key = randomUUID()
  const first = await order(key, { customerId, totalCents: 1 })
  expect((await order(key, { customerId, totalCents: 2 })).status).toBe(422)
  expect((await order(undefined, { customerId, totalCents: 1 })).status).toBe(400)
  const headers = { 'content-type': 'application/json', 'idempotency-key': key, authorization: 'Bearer bob' }
  const other = await order(key, { customerId, totalCents: 1 }, { headers })
  expect(other).toMatchObject({ status: 201, replayed: false })
  expect(other.body).not.toBe(first.body)
  expect(await countOf(customerId)).toBe(2)
})

test('a refused body is 400, stores nothing, and costs no key', async () => {
  const customerId = randomUUID()
  const key = randomUUID()
  expect((await order(key, { customerId, totalCents: -1 })).status).toBe(400)
  expect((await order(key, { customerId })).status).toBe(400)
  expect(await countOf(customerId)).toBe(0)
  expect(await order(key, { customerId, totalCents: 1 })).toMatchObject({ status: 201, replayed: false })
})

test('a form answers 303, and the same form again leads to the same order', async () => {
  const page = await (await fetch(demo.url)).text()
  const idempotencyKey = /name="idempotencyKey" value="([^"]+)"/.exec(page)?.[1] ?? ''
  const customerId = randomUUID()
  const fields = { idempotencyKey, customerId, totalCents: '4000' }
  const first = await form(fields)
  const again = await form(fields)
  expect([first.status, again.status]).toEqual([303, 303])
  expect(again.headers.get('location')).toBe(first.headers.get('location'))
  const shown = await fetch(demo.url + first.headers.get('location'))
  expect(await shown.text()).toContain(customerId)
  expect((await form({ ...fields, totalCents: '4001' })).headers.get('location')).not.toBe(
    first.headers.get('location'),
  )
  expect(await countOf(customerId)).toBe(2)
})

test('the policy and the page that a problem names are there', async () => {
  const policy = await fetch(`${demo.url}/.well-known/retrysafe`)
  expect(await policy.json()).toMatchObject({ header: 'Idempotency-Key', retentionSeconds: 86_400 })
  const { type, code } = JSON.parse((await order(undefined, { customerId: 'c', totalCents: 1 })).body)
  const page = await fetch(new URL(type, demo.url))
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining(code)])
})

test('the printed commands do what is written above them', async () => {
  const [twice = '', mismatch = '', five = ''] = commands()
  expect(await shell(twice)).toMatch(/^HTTP\/1.1 201 /)
  expect(await shell(twice)).toMatch(/^Idempotent-Replayed: true\r$/m)
  expect(await shell(mismatch)).toMatch(/^HTTP\/1.1 422 /)
  const statuses = (await shell(five)).trim().split('\n')
  expect(statuses).toHaveLength(5)
  expect(statuses.filter((status) => status !== '201' && status !== '409')).toEqual([])
  expect(statuses).toContain('201')
})

test('the command in README does what it says', async () => {
  const [, draw = '', send = ''] = /^(key=.*)\n(curl .*)$/m.exec(read('README.md')) ?? []
  const here = send.replace('localhost:3000', new URL(demo.url).host)
  expect(here).not.toBe(send)
  const [first = '', second = ''] = (await shell(`${draw}\n${here}\necho '<>'\n${here}`)).split('<>')
  expect([first, second]).toEqual([
    expect.stringMatching(/^HTTP\/1.1 201 /),
    expect.stringMatching(/^Idempotent-Replayed: true\r$/m),
  ])
  expect(first).not.toMatch(/Idempotent-Replayed/)
})

test('nothing that is printed opens the database', () => {
  const secrets = secretsIn(folder)
  expect(secrets.length).toBeGreaterThan(0)
  for (const secret of secrets) expect(demo.printed().includes(secret)).toBe(false)
  expect(demo.printed()).not.toMatch(/postgres(ql)?:\/\/|password/i)
})

/** Contents of the small files of the data folder that hold a password. */
function secretsIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /pass|secret/i.test(name))
    .map((name) => readFileSync(join(directory, name), 'utf8').trim())
    .filter((text) => text.length >= 8)
}

test('killed at any moment and started again, no order is lost and none is doubled', async () => {
  const customerId = randomUUID()
  const before = { key: randomUUID(), body: { customerId: `${customerId}-before`, totalCents: 1 } }
  const first = await order(before.key, before.body)
  const sent = new Map<string, Told | undefined>()
  for (let kills = 0; kills < 3; kills += 1) {
    const keys = Array.from({ length: 40 }, () => randomUUID())
    const stopAfter = randomInt(1, keys.length)
    const ends = keys.map(async (key, index) => {
      sent.set(key, undefined)
      const told = await order(key, { customerId, totalCents: 4000 }).catch(() => undefined)
      sent.set(key, told)
      if (index === stopAfter) await demo.stop('SIGKILL')
    })
    await Promise.all(ends)
    expect(demo.process.signalCode).toBe('SIGKILL')
    demo = await startDemo(folder)
  }
  for (const [key, told] of sent) {
    const retry = await order(key, { customerId, totalCents: 4000 })
    expect(retry.status).toBe(201)
    if (told?.status === 201) expect(retry).toEqual({ ...told, replayed: true })
  }
  expect(await countOf(customerId)).toBe(sent.size)
  expect(await order(before.key, before.body)).toEqual({ ...first, replayed: true })
})
