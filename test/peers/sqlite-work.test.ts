/** What the work may do with its connection, and how each way of failing ends. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { planFaults, withFaults } from '../../dist/testing/index.js'
import { isRetrysafeError, retrysafe, type SqliteStore, sqlite } from '../processes/own-sqlite.js'
import { type File, memoryDb, newFile } from './sqlite-room.js'

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

const scope = 'work'
const insert = "insert into effect (key) values ('k')"

async function thrown(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  const error = await thrown(call)
  return isRetrysafeError(error) ? error.code : `not of ours: ${String(error)}`
}

/** The key is free: work that is sent again runs. */
async function runsAnew(of: SqliteStore<Db> = store): Promise<void> {
  const answer = await retrysafe({ store: of }).transaction(
    { scope, key: 'k' },
    ({ tx }) => void tx.exec(insert),
  )
  expect(answer).toEqual({ value: undefined, replayed: false })
  expect(file.effects('k')).toBe(1)
}

test.each(['commit', 'end', 'rollback', 'begin', ' /* ; */ CoMMiT;', "select ';'; rollback -- to x"])(
  'transaction control in the work is refused at its line: %s',
  async (text) => {
    const safe = retrysafe({ store })
    const work = ({ tx }: { tx: Db }) => {
      tx.exec(insert)
      tx.exec(text)
    }
    expect(await codeOf(safe.transaction({ scope, key: 'k' }, work))).toBe('TRANSACTION_ABORTED')
    expect(file.effects('k')).toBe(0)
    await runsAnew()
  },
)

test('savepoints, triggers and functions of better-sqlite3 are the work\u2019s to use', async () => {
  const safe = retrysafe({ store })
  await safe.transaction({ scope, key: 'k' }, ({ tx }) => {
    tx.exec(`savepoint part; insert into effect (key) values ('undone'); rollback to part; release part`)
    tx.exec(`create trigger twice after insert on effect when new.key = 'k' begin
      insert into effect (key) select case when new.key is null then 'none' else 'trigger' end; end; ${insert}`)
    const nested = tx.transaction((key: string) => tx.prepare('insert into effect (key) values (?)').run(key))
    nested('nested')
    nested.immediate('immediate')
    const statement = tx.prepare('select key from effect').pluck()
    for (const key of statement.iterate()) if (key === 'k') break
    // Left open in the middle: the end of the attempt closes it.
    statement.iterate().next()
  })
  const counts = ['undone', 'k', 'trigger', 'nested', 'immediate'].map((key) => file.effects(key))
  expect(counts).toEqual([0, 1, 1, 1, 1])
})

test('the connection is lent: it is not closed, and every use behind the end throws', async () => {
  const safe = retrysafe({ store })
  let kept: Db | undefined
  let statement: { run(): unknown } | undefined
  await safe.transaction({ scope, key: 'k' }, ({ tx }) => {
    kept = tx
    statement = tx.prepare(insert)
    expect(() => tx.close()).toThrow(/not for the work/)
  })
  const uses = [() => kept?.exec(insert), () => kept?.prepare(insert), () => statement?.run()]
  for (const use of uses) {
    const error = await thrown((async () => use())())
    expect(isRetrysafeError(error) && error.code).toBe('ATTEMPT_SETTLED')
  }
  expect(file.effects('k')).toBe(0)
})

test('what SQLite rolls back by itself is no success, and nothing is written behind it', async () => {
  file.connect().exec('create table one (id integer primary key); insert into one values (1)')
  const safe = retrysafe({ store })
  const refused: unknown[] = []
  const work = ({ tx }: { tx: Db }) => {
    tx.exec(insert)
    try {
      tx.exec('insert or rollback into one values (1)')
    } catch {
      // Swallowed, as a careless author does.
    }
    try {
      tx.exec(insert)
    } catch (error) {
      refused.push(error)
    }
    return 'done'
  }
  expect(await codeOf(safe.transaction({ scope, key: 'k' }, work))).toBe('TRANSACTION_ABORTED')
  expect(refused.map((error) => isRetrysafeError(error) && error.code)).toEqual(['TRANSACTION_ABORTED'])
  expect(file.effects('k')).toBe(0)
  await runsAnew()
})

test('a deferred foreign key that fails at COMMIT rolls back, with the user\u2019s own error', async () => {
  file.connect().exec(`create table parent (id integer primary key);
    create table child (parent integer references parent (id) deferrable initially deferred)`)
  const safe = retrysafe({ store })
  const work = ({ tx }: { tx: Db }) => void tx.exec(`${insert}; insert into child values (7)`)
  expect(await thrown(safe.transaction({ scope, key: 'k' }, work))).toMatchObject({
    code: 'SQLITE_CONSTRAINT_FOREIGNKEY',
  })
  expect(file.effects('k')).toBe(0)
  await runsAnew()
})

test('a failed statement that the work swallows takes nothing else along', async () => {
  file.connect().exec('create table one (id integer primary key); insert into one values (1)')
  const safe = retrysafe({ store })
  const answer = await safe.transaction({ scope, key: 'k' }, ({ tx }) => {
    tx.exec(insert)
    expect(() => tx.exec('insert into one values (1)')).toThrow(/UNIQUE/)
    return 'done'
  })
  expect(answer.value).toBe('done')
  expect(file.effects('k')).toBe(1)
})

test('a full disk is 503 and leaves nothing half-written', async () => {
  const full = sqlite({
    open: () => {
      const db = file.connect()
      const pages = db.pragma('page_count', { simple: true })
      db.pragma(`max_page_count = ${pages}`)
      return db
    },
  })
  const safe = retrysafe({ store: full })
  const large = 'x'.repeat(500_000)
  const works = [
    safe.transaction({ scope, key: 'k' }, ({ tx }) => {
      tx.exec(insert)
      return large
    }),
    safe.run({ scope, key: 'lease' }, ({ commit }) =>
      commit((tx) => {
        tx.exec(insert)
        return large
      }),
    ),
  ]
  for (const call of works) expect(await codeOf(call)).toBe('STORE_UNAVAILABLE')
  await full.close()
  expect(file.effects('k')).toBe(0)
  expect(await store.find({ key: 'k', scope }, Date.now())).toBeUndefined()
  await runsAnew()
})

test('a file that may only be read is 503 for what is new, and replays what is done', async () => {
  await retrysafe({ store }).transaction({ scope, key: 'done' }, () => 'first')
  const reader = sqlite({ open: () => file.connect({ readonly: true }) })
  const safe = retrysafe({ store: reader })
  expect(await safe.transaction({ scope, key: 'done' }, () => '')).toEqual({ value: 'first', replayed: true })
  let runs = 0
  const work = () => {
    runs += 1
  }
  for (const call of [safe.transaction({ scope, key: 'k' }, work), safe.run({ scope, key: 'l' }, work)])
    expect(await codeOf(call)).toBe('STORE_UNAVAILABLE')
  expect(runs).toBe(0)
  await reader.close()
})

test('COMMITs are synced unless that is switched off', async () => {
  const level = ({ tx }: { tx: Db }) => tx.pragma('synchronous', { simple: true })
  const lax = sqlite({ open: () => file.connect() }, { durable: false })
  const levels = []
  for (const [key, one] of Object.entries({ store, lax })) {
    levels.push((await retrysafe({ store: one }).transaction({ scope, key }, level)).value)
  }
  expect(levels).toEqual([2, 1])
  const findings = async (of: SqliteStore<Db>) =>
    (await of.inspecting.inspect()).filter(({ level: how }) => how !== 'ok').map(({ id }) => id)
  expect([await findings(store), await findings(lax)]).toEqual([[], ['synchronous']])
  await lax.close()
})

test('a file that answers every look and takes no write is told of', async () => {
  const writable = async (of: SqliteStore<Db>) =>
    (await of.inspecting.inspect()).find(({ id }) => id === 'writable')
  expect(await writable(store)).toMatchObject({ level: 'ok' })
  const db = file.connect()
  db.pragma('query_only = true')
  expect(await writable(sqlite(db))).toMatchObject({
    level: 'error',
    found: expect.stringContaining('readonly'),
  })
  db.pragma('query_only = false')
  db.exec('drop table retrysafe_swept')
  expect(await writable(store)).toMatchObject({
    level: 'error',
    found: expect.stringContaining('no such table'),
  })
})

test('what stands around the store finds all that a transaction has', async () => {
  const safe = retrysafe({ store: withFaults(store, planFaults()) })
  const call = () => safe.transaction({ scope, key: 'k' }, ({ tx }) => void tx.exec(insert))
  expect([(await call()).replayed, (await call()).replayed, file.effects('k')]).toEqual([false, true, 1])
})

describe('within', () => {
  test('a connection without an open transaction is refused', async () => {
    const db = file.connect()
    const call = retrysafe({ store }).within(db, { scope, key: 'k' }, () => undefined)
    expect(await codeOf(call)).toBe('OPTION_INVALID')
    expect(db.inTransaction).toBe(false)
  })

  test('a snapshot that is too old to write is held, and the transaction stays usable', async () => {
    const safe = retrysafe({ store })
    const db = file.connect()
    db.exec('begin; select * from effect')
    db.prepare('select count(*) from effect').all()
    await safe.transaction({ scope, key: 'rival' }, ({ tx }) => void tx.exec(insert))
    expect(await codeOf(safe.within(db, { scope, key: 'mine' }, () => undefined))).toBe('IN_PROGRESS')
    expect(db.inTransaction).toBe(true)
    expect(db.pragma('busy_timeout', { simple: true })).toBe(5000)
    db.exec('rollback')
  })

  test('it works inside the transaction of an attempt, and ends with it', async () => {
    const safe = retrysafe({ store })
    const outer = safe.transaction({ scope, key: 'outer' }, async ({ tx }) => {
      await safe.within(tx, { scope, key: 'inner' }, (inner) => void inner.tx.exec(insert))
      throw new Error('the outer work failed')
    })
    await expect(outer).rejects.toThrow('the outer work failed')
    expect(file.effects('k')).toBe(0)
    expect(await store.find({ key: 'inner', scope }, Date.now())).toBeUndefined()
  })
})

describe('a database in memory', () => {
  test('works over one connection, and says that nothing of it survives', async () => {
    const db = memoryDb()
    const memory = sqlite(db)
    await memory.migrate()
    expect(memory.guarantees).toEqual({ atomicWithEffect: true, survivesCrash: false, fenced: true })
    const safe = retrysafe({ store: memory })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        thrown(safe.transaction({ scope, key: 'k' }, () => 'once').then(({ replayed }) => replayed)),
      ),
    )
    expect(answers.length).toBe(20)
    expect(await memory.operating.count()).toMatchObject({ done: 1 })
    db.close()
  })

  test('is refused where each open() would give another one', async () => {
    const memory = sqlite({ open: memoryDb })
    expect(await codeOf(memory.migrate())).toBe('OPTION_INVALID')
  })
})

test('open() must give a new connection each time, and to the same file', async () => {
  const [same, other] = [file.connect(), newFile()]
  const again = sqlite({ open: () => same })
  const files = [file, other]
  const changing = sqlite({ open: () => (files.shift() ?? other).connect() })
  for (const one of [again, changing]) {
    expect(await codeOf(retrysafe({ store: one }).transaction({ scope, key: 'k' }, () => 'never'))).toBe(
      'OPTION_INVALID',
    )
  }
  await runsAnew()
  await changing.close()
  await other.close()
})

test('what is no connection is refused at once', () => {
  for (const wrong of [undefined, null, {}, { open: 1 }, { prepare: () => undefined }]) {
    expect(() => sqlite(wrong as never)).toThrow(/better-sqlite3/)
  }
  for (const wrong of [{ durable: 'yes' }, { answerTimeoutMs: 0 }, { answerTimeoutMs: 1.5 }]) {
    expect(() => sqlite(memoryDb(), wrong as never)).toThrow(/must be/)
  }
})
