/** One file and many writers: other processes, killed ones, and nothing of SQLite's own words for it reaches a caller. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { statements } from '../../dist/stores/sqlite/statements.js'
import { isRetrysafeError, retrysafe, type SqliteStore, sqlite } from '../processes/own-sqlite.js'
import { until } from '../setup/until.js'
import type { Order } from './processes/sqlite-rival.js'
import { type File, newFile, startRival } from './sqlite-room.js'

type Db = ReturnType<File['connect']>

let file: File
let store: SqliteStore<Db>

beforeEach(async () => {
  file = newFile()
  store = sqlite({ open: () => file.connect() })
  await store.migrate()
})

afterEach(async () => {
  await store.close()
  await file.close()
})

const scope = 'rivals'

function keysOf(count: number): readonly string[] {
  return Array.from({ length: count }, () => randomUUID())
}

function insert(tx: Db, key: string): void {
  tx.prepare('insert into effect (key) values (?)').run(key)
}

test.each([{ shared: 0 }, { shared: 2 }])(
  'four processes that hammer one file see no SQLITE_BUSY, and each intent takes effect once ($shared over shared connections)',
  async ({ shared }) => {
    const keys = keysOf(120)
    // However busy the machine is: what is looked for is an error of SQLite, and none of time.
    const options = { answerTimeoutMs: 60_000 }
    const rivals = [0, 1, 2, 3].map((index) =>
      startRival({ do: 'hammer', keys, opening: { ...file.opening, options, shared: index < shared } }),
    )
    const told = await Promise.all(rivals.map((rival) => rival.next()))
    await Promise.all(rivals.map(({ exit }) => exit))
    for (const one of told) expect('ends' in one && new Set(one.ends)).toEqual(new Set(['done']))
    expect(keys.filter((key) => file.effects(key) !== 1)).toEqual([])
    expect(await store.operating.count()).toMatchObject({ done: keys.length, running: 0, released: 0 })
  },
)

test('timers go on while another process holds the file, and the attempt goes through when it lets go', async () => {
  const rival = startRival({ do: 'hold', opening: file.opening, key: 'theirs' })
  expect(await rival.next()).toEqual({ held: true })
  const from = performance.now()
  let last = from
  let longestMs = 0
  let ticks = 0
  const ticking = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last)
    last = performance.now()
    ticks += 1
  }, 1)
  let settled = false
  const mine = retrysafe({ store })
    .transaction({ scope, key: 'mine' }, ({ tx }) => insert(tx, 'mine'))
    .finally(() => {
      settled = true
    })
  await until(() => ticks >= 300)
  const heldMs = performance.now() - from
  clearInterval(ticking)
  expect(settled).toBe(false)
  expect(longestMs).toBeLessThan(heldMs / 2)
  rival.child.send('let go')
  await mine
  await rival.exit
  expect([file.effects('theirs'), file.effects('mine')]).toEqual([1, 1])
})

test('a file that stays busy counts as down: 503, and nothing of the work has run', async () => {
  const rival = startRival({ do: 'hold', opening: file.opening, key: 'theirs' })
  await rival.next()
  const impatient = sqlite({ open: () => file.connect() }, { answerTimeoutMs: 50 })
  const safe = retrysafe({ store: impatient })
  let runs = 0
  const work = () => {
    runs += 1
  }
  for (const call of [safe.transaction({ scope, key: 'a' }, work), safe.run({ scope, key: 'b' }, work)]) {
    const error = await call.catch((thrown: unknown) => thrown)
    expect(isRetrysafeError(error) && [error.code, error.retryAfterMs]).toEqual(['STORE_UNAVAILABLE', 1000])
  }
  expect(runs).toBe(0)
  rival.child.send('let go')
  await rival.exit
  await impatient.close()
})

test('a replay waits for no writer', async () => {
  const safe = retrysafe({ store })
  await safe.transaction({ scope, key: 'done' }, () => 'first')
  const rival = startRival({ do: 'hold', opening: file.opening, key: 'theirs' })
  await rival.next()
  const impatient = retrysafe({ store: sqlite({ open: () => file.connect() }, { answerTimeoutMs: 1 }) })
  for (const call of [impatient.transaction, impatient.run]) {
    expect(await call({ scope, key: 'done' }, () => 'again')).toEqual({ value: 'first', replayed: true })
  }
  rival.child.send('let go')
  await rival.exit
  await impatient.close()
})

test('a process killed in the middle of its transaction leaves no effect and a free key', async () => {
  const rival = startRival({ do: 'hold', opening: file.opening, key: 'shared' })
  await rival.next()
  const waiting = retrysafe({ store }).transaction({ scope, key: 'shared' }, ({ tx }) => {
    insert(tx, 'shared')
    return 'mine'
  })
  rival.child.kill('SIGKILL')
  expect(await waiting).toEqual({ value: 'mine', replayed: false })
  expect(file.effects('shared')).toBe(1)
})

test('what was acknowledged is there after each of ten kills, and record and effect are never apart', async () => {
  for (let round = 0; round < 10; round += 1) {
    const prefix = `march-${round}`
    const order: Order = { do: 'march', opening: file.opening, prefix }
    const rival = startRival(order)
    const acknowledged: string[] = []
    for (let steps = 0; steps < 5 + round; steps += 1) {
      const told = await rival.next()
      if ('acknowledged' in told) acknowledged.push(told.acknowledged)
    }
    rival.child.kill('SIGKILL')
    await rival.exit
    expect(acknowledged.filter((key) => file.effects(key) !== 1)).toEqual([])
  }
  const db = file.connect()
  const rows = (text: string) => db.prepare(text).pluck().all()
  const effects = rows('select key from effect order by key')
  const done = rows('select key from retrysafe_intent where state = 3 order by key')
  expect(effects).toEqual(done)
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
})

test('six keys that only look alike are six records', async () => {
  for (const key of ['Ab', 'aB', 'ab ', 'ab', '\u00e9', 'e\u0301']) {
    const value = await retrysafe({ store }).transaction({ scope, key }, () => key)
    expect(value).toEqual({ value: key, replayed: false })
  }
  expect(await store.operating.count()).toMatchObject({ done: 6 })
})

test('a body of 3 MB comes back whole', async () => {
  const body = 'é'.repeat(1_500_000)
  const safe = retrysafe({ store, maxReplyBytes: 4_000_000 })
  expect(await safe.transaction({ scope, key: 'large' }, () => body)).toEqual({
    value: body,
    replayed: false,
  })
  expect(await safe.transaction({ scope, key: 'large' }, () => '')).toEqual({ value: body, replayed: true })
})

test('four clients that migrate at once run each migration once', async () => {
  const fresh = newFile()
  const stores = [1, 2, 3, 4].map(() => sqlite({ open: () => fresh.connect() }))
  const ran = await Promise.all(stores.map((one) => one.migrate()))
  expect(ran.flat()).toEqual(['0001_intent'])
  for (const one of stores) await one.close()
  await fresh.close()
})

test('sql() is what migrate() runs', async () => {
  const fresh = newFile()
  fresh.connect().exec(store.sql())
  const other = sqlite({ open: () => fresh.connect() })
  expect(await other.migrate()).toEqual([])
  await other.close()
  await fresh.close()
})

test('before its tables are there the store says what to run', async () => {
  const fresh = newFile()
  const bare = sqlite({ open: () => fresh.connect() })
  await expect(bare.find({ key: 'k', scope }, Date.now())).rejects.toThrow(/run store\.migrate\(\)/)
  await bare.close()
  await fresh.close()
})

test('a sweep goes in small transactions, and others write in between', async () => {
  const db = file.connect()
  db.exec(`with recursive many (n) as (select 1 union all select n + 1 from many where n < 1000)
    insert into retrysafe_intent (key, scope, state, owner, generation, fingerprint, ends_at, outcome)
    select 'past-' || n, 'rivals', 3, 'o', n, x'01', 1, x'01' from many`)
  let over = false
  const sweep = store.sweeping.sweep({ limit: 1000, callerNowMs: Date.now() }).finally(() => {
    over = true
  })
  let written = 0
  const safe = retrysafe({ store })
  while (!over) {
    await safe.transaction({ scope, key: `meanwhile-${written}` }, () => 'written')
    written += 1
  }
  expect(await sweep).toBe(1000)
  expect(written).toBeGreaterThan(3)
})

test('the sweeper and the operator find their records by an index', () => {
  const db = file.connect()
  const plan = (text: string) => {
    const values = Object.fromEntries([...text.matchAll(/:(\w+)/g)].map(([, name]) => [name, 1]))
    const steps = db.prepare<[object], { detail: string }>(`explain query plan ${text}`).all(values)
    return steps.map(({ detail }) => detail).join('; ')
  }
  expect(plan(statements.sweep)).toContain('USING INDEX retrysafe_intent_sweep')
  expect(plan(statements.list('state in (4, 5) and state in (4)'))).toContain('retrysafe_intent_operator')
  expect(plan(statements.lookUp)).toMatch(/SEARCH .* USING INDEX .*\(key=\? AND scope=\?\)/)
})
