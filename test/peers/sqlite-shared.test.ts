/** One connection that the store shares with the rest of the program: nobody else ever writes into its transactions (rule 37). */
import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { idempotent } from '../../dist/http/fetch.js'
import { reply } from '../../dist/index.js'
import { isRetrysafeError, retrysafe, type SqliteStore, sqlite } from '../processes/own-sqlite.js'
import { type File, newFile } from './sqlite-room.js'

type Db = ReturnType<File['connect']>

let file: File
let db: Db
let store: SqliteStore<Db>

beforeEach(async () => {
  file = newFile()
  db = file.connect()
  store = sqlite(db)
  await store.migrate()
})

afterEach(() => file.close())

const scope = 'shared'

function write(key: string, through: Db = db): void {
  through.prepare('insert into effect (key) values (?)').run(key)
}

async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return isRetrysafeError(error) ? error.code : String(error)
}

test('work that waits is refused and rolled back, wherever it waits', async () => {
  const safe = retrysafe({ store })
  const ways: ((tx: Db) => Promise<unknown>)[] = [
    async (tx) => {
      write('k', tx)
      await turn()
    },
    async (tx) => {
      await turn()
      write('k', tx)
    },
    async (tx) => {
      write('k', tx)
      await turn()
      write('k', tx)
    },
    () => new Promise((resolve) => setTimeout(resolve, 1)),
    (tx) => new Promise((resolve) => process.nextTick(() => resolve(tx))),
  ]
  for (const way of ways) {
    expect(await codeOf(safe.transaction({ scope, key: 'k' }, ({ tx }) => way(tx)))).toBe(
      'TRANSACTION_ABORTED',
    )
    const commit = safe.run({ scope, key: randomUUID() }, (attempt) => attempt.commit((tx) => way(tx)))
    expect(await codeOf(commit)).toBe('TRANSACTION_ABORTED')
  }
  expect(file.effects('k')).toBe(0)
  expect(db.inTransaction).toBe(false)
  const answer = await safe.transaction({ scope, key: 'k' }, ({ tx }) => write('k', tx))
  expect(answer.replayed).toBe(false)
  expect(file.effects('k')).toBe(1)
})

test('what others write while the work waits is not rolled back with it', async () => {
  const safe = retrysafe({ store })
  let go: () => void = () => undefined
  const waiting = new Promise<void>((resolve) => {
    go = resolve
  })
  let entered: () => void = () => undefined
  const inside = new Promise<void>((resolve) => {
    entered = resolve
  })
  const refused = safe.transaction({ scope, key: 'k' }, async ({ tx }) => {
    write('mine', tx)
    entered()
    await waiting
  })
  await inside
  await turn()
  write('theirs')
  go()
  expect(await codeOf(refused)).toBe('TRANSACTION_ABORTED')
  expect([file.effects('mine'), file.effects('theirs')]).toEqual([0, 1])
})

test('rows that the program writes beside a crowd of attempts, half of which fail, all stand', async () => {
  const safe = retrysafe({ store, whileRunning: { waitMs: 20_000 } })
  const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`)
  const failing = (key: string) => Number(key.split('-')[1]) % 2 === 1
  const attempt = async (key: string) => {
    const call = safe.transaction({ scope, key }, ({ tx }) => {
      write(key, tx)
      if (failing(key)) throw new Error('the work failed')
    })
    const end = await call.then(
      () => 'done',
      () => 'failed',
    )
    // In the very turn in which the attempt has ended, where the next one may be about to begin.
    write('beside')
    return end
  }
  const strangers = keys.map(async (_, index) => {
    for (let hops = 0; hops < index % 7; hops += 1) await (index % 3 === 0 ? turn() : null)
    write('beside')
    expect(db.inTransaction).toBe(false)
  })
  const ends = await Promise.all([...keys, ...keys].map(attempt))
  await Promise.all(strangers)
  expect(ends).toEqual([...keys, ...keys].map((key) => (failing(key) ? 'failed' : 'done')))
  expect(file.effects('beside')).toBe(3 * keys.length)
  expect(keys.map((key) => file.effects(key))).toEqual(keys.map((key) => (failing(key) ? 0 : 1)))
})

test('statements that the program has prepared before take part in the transaction', async () => {
  const prepared = db.prepare("insert into effect (key) values ('prepared')")
  const safe = retrysafe({ store })
  let unused = 0
  safe.on('txUnused', () => {
    unused += 1
  })
  await safe.transaction({ scope, key: 'kept' }, () => void prepared.run())
  expect(file.effects('prepared')).toBe(1)
  const failed = safe.transaction({ scope, key: 'failed' }, () => {
    prepared.run()
    throw new Error('the work failed')
  })
  await expect(failed).rejects.toThrow('the work failed')
  expect(file.effects('prepared')).toBe(1)
  expect(unused).toBe(0)
})

test('a transaction that the program has open is waited for, and never written into', async () => {
  const safe = retrysafe({ store })
  db.exec('begin immediate')
  write('theirs')
  const calls = [
    safe.transaction({ scope, key: 'a' }, ({ tx }) => write('mine', tx)),
    safe.run({ scope, key: 'b' }, ({ commit }) => commit((tx) => write('mine', tx))),
  ]
  for (let turns = 0; turns < 50; turns += 1) await turn()
  db.exec('rollback')
  await Promise.all(calls)
  expect([file.effects('theirs'), file.effects('mine')]).toEqual([0, 2])
})

test('work that ends the transaction past `tx` is no success, and its key is free', async () => {
  const safe = retrysafe({ store })
  const endings = [['rollback'], ['commit'], ['rollback', 'begin immediate'], ['commit', 'begin']]
  for (const ending of endings) {
    const call = safe.transaction({ scope, key: 'k' }, () => {
      for (const text of ending) db.exec(text)
      write('behind')
    })
    expect(await codeOf(call)).toBe('TRANSACTION_ABORTED')
    expect(db.inTransaction).toBe(false)
  }
  // What the work has committed by itself, outside any transaction of ours, cannot be undone.
  expect(file.effects('behind')).toBe(2)
  expect(await safe.transaction({ scope, key: 'k' }, () => 'anew')).toEqual({
    value: 'anew',
    replayed: false,
  })
})

test('an iterator that the work leaves open keeps no transaction open', async () => {
  write('a')
  write('b')
  const safe = retrysafe({ store })
  const left: IterableIterator<unknown>[] = []
  const look = () => {
    write('k')
    const rows = db.prepare('select key from effect').iterate()
    rows.next()
    left.push(rows)
  }
  await expect(safe.transaction({ scope, key: 'k' }, look)).rejects.toThrow(/busy executing/)
  expect(db.inTransaction).toBe(false)
  const failed = safe.transaction({ scope, key: 'l' }, () => {
    look()
    throw new Error('the work failed')
  })
  for (let turns = 0; turns < 50; turns += 1) await turn()
  // The first is still open: it is waited for, as any use of the connection by somebody else.
  expect(left.length).toBe(1)
  left[0]?.return?.()
  await expect(failed).rejects.toThrow('the work failed')
  left[1]?.return?.()
  expect([db.inTransaction, file.effects('k')]).toEqual([false, 0])
})

test('the settings of the connection are as they were', async () => {
  const settings = () => ['busy_timeout', 'synchronous'].map((name) => db.pragma(name, { simple: true }))
  const safe = retrysafe({ store })
  const before = settings()
  const inside = await safe.transaction({ scope, key: 'k' }, settings)
  await safe.run({ scope, key: 'l' }, () => undefined)
  expect(before).toEqual([5000, 1])
  expect(inside.value).toEqual([5000, 2])
  expect(settings()).toEqual(before)
})

test('a database that is not in WAL mode is refused with the words to run', async () => {
  const fresh = newFile()
  fresh.only.pragma('journal_mode = delete')
  await expect(sqlite(fresh.only).migrate()).rejects.toThrow(/journal_mode = wal/)
  await fresh.close()
})

test('a handler over HTTP that only waits for what it has is synchronous enough', async () => {
  const safe = retrysafe({ store, scope: () => scope })
  const handler = idempotent(safe, { mode: 'transaction' }, async ({ tx, body }) => {
    write((body as { key: string }).key, tx)
    return reply(201, { written: 1 })
  })
  const send = () =>
    handler(
      new Request('http://localhost/orders', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
        body: JSON.stringify({ key: 'over-http' }),
      }),
    )
  const [first, again] = [await send(), await send()]
  expect([first.status, await first.json()]).toEqual([201, { written: 1 }])
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(file.effects('over-http')).toBe(1)
})
