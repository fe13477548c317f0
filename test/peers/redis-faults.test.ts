/** What a Redis does to its users: it forgets scripts and records, stops, hangs and fills up. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { fingerprintOfValue } from '../../dist/fingerprint.js'
import { isRetrysafeError, retrysafe } from '../../dist/index.js'
import { scripts } from '../../dist/stores/redis/scripts.js'
import type { RedisStore } from '../../dist/stores/redis.js'
import { redisProgram } from '../../servers/redis.js'
import { until } from '../setup/until.js'
import { missing } from './debian.js'
import { clientNames } from './processes/redis-clients.js'
import { type Bench, claimOf, fresh, minuteMs, nameOf, openBench, outcome } from './redis-bench.js'
import { openRedisProxy } from './redis-proxy.js'

const reason = missing(redisProgram, 'redis-server')

function intentOf(key: string = randomUUID()) {
  return { scope: 's', key }
}

/** Work that waits until it is told to end. */
function paused<Value>(value: Value) {
  let start: () => void = () => undefined
  let end: () => void = () => undefined
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  async function work(): Promise<Value> {
    start()
    await ended
    return value
  }
  return { work, started, end: () => end() }
}

/** Sends again whatever a caller would send again, until there is an answer. Other errors are thrown. */
async function insist(call: () => Promise<unknown>, codes: Set<string>): Promise<unknown> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isRetrysafeError(error) || !error.retryable) throw error
      codes.add(error.code)
      await new Promise((resume) => setTimeout(resume, 20))
    }
  }
}

describe.skipIf(reason !== undefined).each(clientNames)(
  `a server over %s (${reason ?? 'Redis'})`,
  (client) => {
    let bench: Bench
    let store: RedisStore

    beforeAll(async () => {
      bench = await openBench(client, { appendOnly: true })
      store = await bench.store(client)
    })

    afterAll(() => bench?.close())

    /** In a cluster only the server that has the key takes it. */
    async function forget(intent: { key: string; scope: string }): Promise<void> {
      const gone = await Promise.allSettled(bench.administrators.map((one) => one.del(nameOf(intent))))
      expect(gone.filter((end) => end.status === 'fulfilled' && end.value === 1)).toHaveLength(1)
    }

    function flush() {
      return Promise.all(bench.administrators.map((one) => one.script('FLUSH')))
    }

    test('may forget its scripts between any two operations', async () => {
      const request = claimOf(fresh())
      const done = { ...request, outcome, retainMs: minuteMs }
      const operations: readonly (readonly [() => Promise<unknown>, unknown])[] = [
        [() => store.claim(request).then(({ claimed }) => claimed), true],
        [() => store.renew([{ ...request, leaseMs: minuteMs }]), [true]],
        [() => store.release({ ...request, retainMs: minuteMs }), true],
        [() => store.find(request.identity, 0).then((seen) => seen?.state), 'released'],
        [() => store.complete(done), false],
        [() => store.operating.list({ limit: 1 }).then((rows) => rows.length), 1],
      ]
      for (const [operation, expected] of operations) {
        await flush()
        expect(await operation()).toEqual(expected)
      }
    })

    test('may forget its scripts again and again under load', async () => {
      const safe = retrysafe({ store, whileRunning: { waitMs: 20_000 } })
      const runs = new Map<string, number>()
      let flushed = 0
      let loading = true
      const flushes = (async () => {
        while (loading) {
          await flush()
          flushed += 1
        }
      })()
      const call = (key: string) =>
        safe.run(intentOf(key), async () => {
          runs.set(key, (runs.get(key) ?? 0) + 1)
          return key
        })
      while (flushed < 20) {
        const keys = Array.from({ length: 30 }, () => randomUUID())
        const answers = await Promise.all([...keys, ...keys, ...keys].map(call))
        expect(answers.map(({ value }) => value)).toEqual([...keys, ...keys, ...keys])
      }
      loading = false
      await flushes
      expect([...runs.values()].filter((count) => count !== 1)).toEqual([])
      await safe.close()
    })

    test('that forgot a record refuses its owner, whose renewal says so too', async () => {
      const request = claimOf(fresh())
      await store.claim(request)
      await forget(request.identity)
      expect(await store.renew([{ ...request, leaseMs: minuteMs }])).toEqual([false])
      expect(await store.complete({ ...request, outcome, retainMs: minuteMs })).toBe(false)
      expect(await store.release({ ...request, retainMs: minuteMs })).toBe(false)
      expect(await store.find(request.identity, Date.now())).toBeUndefined()
    })

    test('that forgot a record tells its owner at the end that the claim is lost', async () => {
      const safe = retrysafe({ store })
      const intent = intentOf()
      const { work, started, end } = paused('sent')
      const first = safe.run(intent, work)
      await started
      await forget(intent)
      end()
      await expect(first).rejects.toMatchObject({ code: 'LEASE_LOST' })
      await safe.close()
    })

    test('that forgot a record lets a second attempt in, and the late first one cannot overwrite it', async () => {
      const safe = retrysafe({ store })
      const rival = retrysafe({ store: await bench.store(client) })
      const intent = intentOf()
      const { work, started, end } = paused('first')
      const first = safe.run(intent, work)
      await started
      await forget(intent)
      const second = paused('second')
      const running = rival.run(intent, second.work)
      await second.started
      end()
      await expect(first).rejects.toMatchObject({ code: 'LEASE_LOST' })
      second.end()
      expect(await running).toEqual({ value: 'second', replayed: false })
      expect(await safe.run(intent, async () => 'third')).toEqual({ value: 'second', replayed: true })
      await safe.close()
      await rival.close()
    })

    test('keeps what a silent owner left as unknown, until an operator has resolved it', async () => {
      const safe = retrysafe({ store, onOwnerLost: 'unknown' })
      const intent = intentOf()
      const silent = claimOf(intent, { fingerprint: fingerprintOfValue(undefined).bytes(), leaseMs: 1 })
      await store.claim(silent)
      await until(async () => (await store.find(intent, Date.now()))?.live === false)
      const retry = () => safe.run(intent, async () => 'never')
      await expect(retry()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      await expect(retry()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      const [record] = await safe.list({ states: ['unknown'] })
      expect(record).toMatchObject({ key: intent.key, scope: 's', state: 'unknown', attempts: 1 })
      const named = { ...intent, generation: record?.generation ?? 0 }
      expect(await safe.resolve(named, { done: true, value: 'sent' })).toBe(true)
      expect(await safe.resolve(named, { done: false })).toBe(false)
      expect(await retry()).toEqual({ value: 'sent', replayed: true })
      await safe.close()
    })

    test('that is killed and started again under load is answered for, and nothing runs twice', async () => {
      const safe = retrysafe({ store, leaseMs: 15_000, whileRunning: { waitMs: 1000 } })
      const runs = new Map<string, number>()
      const codes = new Set<string>()
      let ended = 0
      const keys = Array.from({ length: 300 }, (_, index) => `load-${index}`)
      const worker = async (index: number) => {
        for (const key of keys.filter((_, at) => at % 10 === index)) {
          const attempt = () =>
            safe.run(intentOf(key), async () => {
              runs.set(key, (runs.get(key) ?? 0) + 1)
              return key
            })
          expect(await insist(attempt, codes)).toMatchObject({ value: key })
          ended += 1
        }
      }
      const workers = Promise.all(Array.from({ length: 10 }, (_, index) => worker(index)))
      const [server] = bench.servers
      await until(() => ended > 30)
      await server?.kill()
      await server?.restart()
      await workers
      // Flushed to its file before it was acknowledged: no claim and no outcome is gone. With `everysec` some were.
      expect([...runs.values()].filter((count) => count > 1)).toEqual([])
      expect(runs.size).toBe(keys.length)
      expect([...codes].filter((code) => !['STORE_UNAVAILABLE', 'IN_PROGRESS'].includes(code))).toEqual([])
      await safe.close()
    })

    test('that is full refuses claims and keeps what it has', async () => {
      const done = claimOf(fresh())
      await store.claim(done)
      await store.complete({ ...done, outcome, retainMs: minuteMs })
      const running = claimOf(fresh())
      await store.claim(running)
      const limit = (bytes: string) =>
        Promise.all(bench.administrators.map((one) => one.config('SET', 'maxmemory', bytes)))
      await limit('1')
      const refused = claimOf(fresh())
      await expect(store.claim(refused)).rejects.toThrow('OOM')
      await expect(store.complete({ ...running, outcome, retainMs: minuteMs })).rejects.toThrow('OOM')
      const safe = retrysafe({ store })
      await expect(safe.run(intentOf(), async () => 'never')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      })
      expect((await store.find(done.identity, Date.now()))?.state).toBe('done')
      await limit('0')
      expect(await store.find(refused.identity, Date.now())).toBeUndefined()
      expect(await store.complete({ ...running, outcome, retainMs: minuteMs })).toBe(true)
      await safe.close()
    })
  },
)

describe.skipIf(reason !== undefined).each(['ioredis', 'node-redis'] as const)(
  `a connection over %s (${reason ?? 'Redis'})`,
  (client) => {
    test('that stands still is given up in time, and used again when it goes on', async () => {
      const bench = await openBench(client)
      const proxy = await openRedisProxy(bench.ports[0] ?? 0)
      const store = await bench.store(client, { answerTimeoutMs: 700 }, proxy.port)
      const request = claimOf(fresh())
      await store.claim(request)
      proxy.standStill()
      await expect(store.find(request.identity, 0)).rejects.toMatchObject({ code: 'ETIMEDOUT' })
      await expect(store.renew([{ ...request, leaseMs: minuteMs }])).rejects.toThrow('within 700 ms')
      await expect(store.operating.count()).rejects.toThrow('within 700 ms')
      await expect(store.inspecting.inspect()).rejects.toThrow('within 700 ms')
      const safe = retrysafe({ store })
      await expect(safe.run(intentOf(), async () => 'never')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      })
      proxy.goOn()
      await until(async () => (await store.find(request.identity, 0).catch(() => undefined)) !== undefined)
      expect(await store.complete({ ...request, outcome, retainMs: minuteMs })).toBe(true)
      await safe.close()
      proxy.close()
      await bench.close()
    })

    test.each([true, false])(
      'that stands still leaves no claim behind which nobody waits for any more, its clock known: %s',
      async (known) => {
        const bench = await openBench(client)
        const proxy = await openRedisProxy(bench.ports[0] ?? 0)
        const store = await bench.store(client, { answerTimeoutMs: 200 }, proxy.port)
        const safe = retrysafe({ store, onOwnerLost: 'unknown' })
        // Shows the server's clock, which is what a claim that comes too late is told by.
        if (known) await safe.run(intentOf(), async () => 'before')
        const intents = Array.from({ length: 5 }, () => intentOf())
        proxy.standStill()
        const refused = await Promise.allSettled(
          intents.map((intent) => safe.run(intent, async () => 'never')),
        )
        expect(refused.map(({ status }) => status)).toEqual(intents.map(() => 'rejected'))
        // Past the last instant of the claims: the limit, and what the reckoning may be off.
        const pastMs = Date.now() + 200 + 2000
        await until(() => Date.now() > pastMs)
        const sent = proxy.sent(scripts.claim.sha)
        proxy.goOn()
        await until(() => proxy.sent(scripts.claim.sha) >= sent + intents.length)
        const answers = await Promise.all(
          intents.map((intent) => insist(() => safe.run(intent, async () => 'after'), new Set())),
        )
        expect(answers).toEqual(intents.map(() => ({ value: 'after', replayed: false })))
        await safe.close()
        proxy.close()
        await bench.close()
      },
    )

    test('to a server whose clock jumps ahead still claims', async () => {
      const bench = await openBench(client)
      const store = await bench.store(client)
      expect((await store.claim(claimOf(fresh()))).claimed).toBe(true)
      // As good as a jump of the server: what is reckoned from is behind by an hour.
      const now = performance.now.bind(performance)
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() - 60 * minuteMs)
      const claims = await Promise.all([store.claim(claimOf(fresh())), store.claim(claimOf(fresh()))])
      clock.mockRestore()
      expect(claims.map(({ claimed }) => claimed)).toEqual([true, true])
      await bench.close()
    })

    test('that was never there is given up in time as well', async () => {
      const bench = await openBench(client)
      const store = await bench.store(client, { answerTimeoutMs: 300 })
      await bench.servers[0]?.kill()
      const safe = retrysafe({ store })
      await expect(safe.run(intentOf(), async () => 'never')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        status: 503,
      })
      await safe.close()
      await bench.close()
    })
  },
)
