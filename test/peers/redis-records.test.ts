/** What lies in Redis: names, words and expiries. */
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { retrysafe } from '../../dist/index.js'
import { type RedisStore, redis } from '../../dist/stores/redis.js'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { clientNames, isCluster, openClient } from './processes/redis-clients.js'
import {
  type Bench,
  changeWord,
  claimOf,
  fresh,
  lapse,
  minuteMs,
  nameOf,
  openBench,
  outcome,
} from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')
const dayMs = 24 * 60 * minuteMs
/** What the store adds to retention, and its default for what is unfinished. */
const pastMs = 10 * minuteMs
const unfinishedMs = 30 * dayMs

/** Keys that a collation, a trim, a glob or a hash tag takes for one another. */
const keys = [
  'Ab',
  'aB',
  'ab ',
  'ab',
  '\u00e9',
  'e\u0301',
  '{',
  '}',
  '{x}',
  '{}',
  '}{',
  '*',
  '[a]',
  '\\',
  '1:',
]

describe.skipIf(reason !== undefined).each(clientNames)(`names over %s (${reason ?? 'Redis'})`, (client) => {
  let bench: Bench
  let store: RedisStore

  beforeAll(async () => {
    bench = await openBench(client)
    store = await bench.store(client)
  })

  afterAll(() => bench?.close())

  test('every pair of key and scope is a record of its own, and listed under its very name', async () => {
    const identities = keys.flatMap((key) => keys.map((scope) => ({ key, scope })))
    const claims = await Promise.all(identities.map((identity) => store.claim(claimOf(identity))))
    expect(claims.every(({ claimed }) => claimed)).toBe(true)
    const rows = await store.operating.list({ limit: 1000 })
    const names = (all: readonly { key: string; scope: string }[]) =>
      all.map(({ key, scope }) => JSON.stringify([key, scope])).sort()
    expect(names(rows.map(({ identity }) => identity))).toEqual(names(identities))
    expect((await store.operating.count()).running).toBe(identities.length)
  })

  test('an outcome of 1 MiB of every byte comes back whole', async () => {
    const large = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => index * 31)
    const request = claimOf(fresh())
    await store.claim(request)
    await store.complete({ ...request, outcome: large, retainMs: minuteMs })
    const found = (await store.find(request.identity, Date.now()))?.outcome
    expect(found && Buffer.compare(found, large)).toBe(0)
  })

  test('what is kept beside a record would share its slot, whatever braces its key holds', async (context) => {
    if (!isCluster(client)) return context.skip('a single server has no slots')
    for (const key of keys) {
      const name = nameOf({ key, scope: '}{s}' })
      const slot = await bench.administrator.cluster('KEYSLOT', name)
      expect(await bench.administrator.cluster('KEYSLOT', `${name}:steps`)).toBe(slot)
    }
  })

  test('two stores of other prefixes share nothing', async () => {
    const other = await bench.store(client, { prefix: 'other:' })
    const request = claimOf(fresh())
    await store.claim(request)
    expect(await other.find(request.identity, Date.now())).toBeUndefined()
    expect((await other.claim(claimOf(request.identity))).claimed).toBe(true)
    expect(await other.operating.list({ limit: 1000 })).toHaveLength(1)
  })
})

describe.skipIf(reason !== undefined)(`records (${reason ?? 'Redis'})`, () => {
  let bench: Bench
  let store: RedisStore

  beforeAll(async () => {
    bench = await openBench('ioredis')
    store = await bench.store('ioredis')
  })

  afterAll(() => bench?.close())

  async function held() {
    const request = claimOf(fresh())
    const answer = await store.claim(request)
    if (!answer.claimed) throw new Error('it was not claimed')
    const { identity, owner } = request
    return { request, identity, owner, generation: answer.generation }
  }

  /** What is left until Redis forgets the record, to the minute. */
  async function expiry(identity: { key: string; scope: string }): Promise<number> {
    return Math.round((await bench.administrator.pttl(nameOf(identity))) / minuteMs) * minuteMs
  }

  test('every operation leaves an expiry behind: of retention where it is finished, of 30 days where not', async () => {
    const one = await held()
    expect(await expiry(one.identity)).toBe(unfinishedMs + minuteMs)
    await store.renew([{ ...one, leaseMs: 5 * minuteMs }])
    expect(await expiry(one.identity)).toBe(unfinishedMs + 5 * minuteMs)
    await store.release({ ...one, retainMs: 60 * minuteMs })
    expect(await expiry(one.identity)).toBe(60 * minuteMs + pastMs)
    const again = { ...claimOf(one.identity), seen: one }
    const granted = await store.takeOver(again)
    expect(await expiry(one.identity)).toBe(unfinishedMs + minuteMs)
    await lapse(bench.administrator, one.identity)
    const { identity, owner } = again
    const verdict = { identity, generation: granted?.generation ?? 0, retainMs: dayMs }
    expect(await store.abandon({ ...verdict, owner })).toBe(true)
    expect(await expiry(identity)).toBe(unfinishedMs + pastMs)
    expect(await store.operating.resolveDone({ ...verdict, outcome })).toBe(true)
    expect(await expiry(identity)).toBe(dayMs + pastMs)
    const done = await held()
    await store.complete({ ...done, outcome, retainMs: 60 * minuteMs })
    expect(await expiry(done.identity)).toBe(60 * minuteMs + pastMs)
  })

  test('a released record with steps is not forgotten with its retention', async () => {
    const one = await held()
    await changeWord(bench.administrator, one.identity, 8, 'e30=')
    await store.release({ ...one, retainMs: minuteMs })
    expect(await expiry(one.identity)).toBe(unfinishedMs + pastMs)
    const seen = await store.find(one.identity, Date.now())
    expect({ state: seen?.state, hasSteps: seen?.hasSteps }).toEqual({ state: 'released', hasSteps: true })
    const dead = await held()
    await changeWord(bench.administrator, dead.identity, 1, 'dead')
    await changeWord(bench.administrator, dead.identity, 8, 'e30=')
    expect(await store.operating.resolveReleased({ ...dead, retainMs: minuteMs })).toBe(true)
    expect(await expiry(dead.identity)).toBe(unfinishedMs + pastMs)
  })

  test('what is refused changes neither the record nor its expiry', async () => {
    const one = await held()
    const name = nameOf(one.identity)
    const before = await bench.administrator.get(name)
    const endsAt = await bench.administrator.pexpiretime(name)
    const rival = claimOf(one.identity)
    await store.claim(rival)
    await store.takeOver({ ...rival, seen: one })
    await store.renew([{ ...rival, leaseMs: 5 * minuteMs }])
    await store.complete({ ...rival, outcome, retainMs: minuteMs })
    await store.release({ ...rival, retainMs: minuteMs })
    await store.abandon({ ...one, retainMs: minuteMs })
    await store.operating.resolveDone({ ...one, outcome, retainMs: minuteMs })
    await store.operating.resolveReleased({ ...one, retainMs: minuteMs })
    expect(await bench.administrator.get(name)).toBe(before)
    expect(await bench.administrator.pexpiretime(name)).toBe(endsAt)
  })

  test('steps are kept by a takeover of what was released, and not by one of what is past its retention', async () => {
    const released = await held()
    await changeWord(bench.administrator, released.identity, 8, 'e30=')
    await store.release({ ...released, retainMs: minuteMs })
    await store.takeOver({ ...claimOf(released.identity), seen: released })
    expect(await store.find(released.identity, Date.now())).toMatchObject({ hasSteps: true, attempts: 2 })
    const done = await held()
    await changeWord(bench.administrator, done.identity, 8, 'e30=')
    await store.complete({ ...done, outcome, retainMs: minuteMs })
    await lapse(bench.administrator, done.identity)
    await store.takeOver({ ...claimOf(done.identity), seen: done })
    expect(await store.find(done.identity, Date.now())).toMatchObject({ hasSteps: false, attempts: 1 })
  })

  test('a generation is greater than one that was forgotten with its record', async () => {
    const first = await held()
    await bench.administrator.del(nameOf(first.identity))
    const again = await store.claim(claimOf(first.identity))
    expect(again.claimed && again.generation).toBeGreaterThan(first.generation)
    const [seconds] = await bench.administrator.time()
    expect(Math.abs(first.generation / 1_000_000 - Number(seconds))).toBeLessThan(60)
  })

  test('a generation above the clock grows by exactly one, in all of its 16 digits', async () => {
    const one = await held()
    const generation = 2 ** 53 - 3
    await changeWord(bench.administrator, one.identity, 2, String(generation))
    await lapse(bench.administrator, one.identity)
    const seen = { owner: one.owner, generation }
    const granted = await store.takeOver({ ...claimOf(one.identity), seen })
    expect(granted).toEqual({ generation: generation + 1, attempts: 2 })
    expect((await store.find(one.identity, Date.now()))?.generation).toBe(generation + 1)
  })

  test.each([
    ['of a version that is not known', '2 running 1 1 1 o m AQI= - -'],
    ['of a state that is not known', '1 asleep 1 1 1 o m AQI= - -'],
    ['that is cut short', '1 running 1 1'],
    ['with a number too large', '1 done 99999999999999999999 1 9999999999999 o m AQI= - AQI='],
    ['that is empty', ''],
  ])('a record %s is an error, and never absent or overwritten', async (_, value) => {
    const request = claimOf(fresh())
    const name = nameOf(request.identity)
    await bench.administrator.set(name, value, 'PX', minuteMs)
    const corrupt = { code: 'RECORD_CORRUPT' }
    await expect(store.find(request.identity, 0)).rejects.toMatchObject(corrupt)
    await expect(store.claim(request)).rejects.toMatchObject(corrupt)
    await expect(retrysafe({ store }).run(request.identity, async () => 'never')).rejects.toMatchObject(
      corrupt,
    )
    const seen = { owner: 'o', generation: 1 }
    const settled = await Promise.allSettled([
      store.takeOver({ ...request, seen }),
      store.complete({ ...request, outcome, retainMs: minuteMs }),
      store.release({ ...request, retainMs: minuteMs }),
    ])
    for (const end of settled) {
      if (end.status === 'rejected') expect(end.reason).toMatchObject(corrupt)
      else expect(end.value || undefined).toBeUndefined()
    }
    expect(await bench.administrator.get(name)).toBe(value)
    await bench.administrator.del(name)
  })

  test('a key of another kind under our name is an error, and stays', async () => {
    const request = claimOf(fresh())
    await bench.administrator.rpush(nameOf(request.identity), 'somebody else’s')
    await expect(store.claim(request)).rejects.toThrow('WRONGTYPE')
    await expect(store.complete({ ...request, outcome, retainMs: minuteMs })).rejects.toThrow('WRONGTYPE')
    expect(await bench.administrator.llen(nameOf(request.identity))).toBe(1)
    await bench.administrator.del(nameOf(request.identity))
  })

  test('an answer that a MULTI on the same connection keeps back is no refusal', async () => {
    const { handle, end } = await openClient('ioredis', bench.ports)
    const shared = handle as Redis
    const { identity, owner } = await held()
    await shared.multi({ pipeline: false })
    const completion = { identity, owner, outcome, retainMs: minuteMs }
    await expect(redis(shared).complete(completion)).rejects.toThrow('inside a MULTI')
    await shared.discard()
    expect(await store.complete(completion)).toBe(true)
    await end()
  })

  test('what needs a transaction is refused before anything runs', async () => {
    const safe = retrysafe({ store })
    const intent = { scope: 's', key: 'transaction' }
    await expect(safe.transaction(intent, async () => 'never')).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(safe.sweep()).rejects.toThrow('expires its records by itself')
    await safe.close()
  })

  test('options that cannot be right are refused', () => {
    const handle = bench.administrator
    const invalid = expect.objectContaining({ code: 'OPTION_INVALID' })
    for (const options of [
      { prefix: '' },
      { prefix: '{a}' },
      { unfinishedRetainMs: 1000 },
      { unfinishedRetainMs: Number.POSITIVE_INFINITY },
      { answerTimeoutMs: 0 },
      { survivesCrash: 'yes' as never },
    ]) {
      expect(() => redis(handle, options)).toThrow(invalid)
    }
    expect(() => redis({} as never)).toThrow(invalid)
    expect(redis(handle).guarantees.survivesCrash).toBe(false)
    expect(redis(handle, { survivesCrash: true }).guarantees.survivesCrash).toBe(true)
  })
})
