/** The connection breaks after the server has carried a command out: whoever sent it is told what it would have been told. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, retrysafe } from '../../dist/index.js'
import { scripts } from '../../dist/stores/redis/scripts.js'
import type { RedisStore } from '../../dist/stores/redis.js'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { type Bench, claimOf, fresh, lapse, minuteMs, openBench, outcome } from './redis-bench.js'
import { openRedisProxy, type RedisProxy } from './redis-proxy.js'

const reason = missing(redisProgram, 'redis-server')

describe.skipIf(reason !== undefined)(`lost answers (${reason ?? 'Redis'})`, () => {
  let bench: Bench
  let proxy: RedisProxy

  beforeAll(async () => {
    bench = await openBench('ioredis')
    // Known to the server, so that the command that is lost is the one that writes.
    for (const { text } of Object.values(scripts)) await bench.administrator.script('LOAD', text)
  })

  afterAll(() => bench?.close())

  beforeEach(async () => {
    proxy = await openRedisProxy(bench.ports[0] ?? 0)
  })

  afterEach(() => proxy.close())

  /** Loses the answer to the script's next run. */
  async function losing<Told>(name: keyof typeof scripts, ask: () => Promise<Told>): Promise<Told> {
    const lost = proxy.loseAnswerTo(scripts[name].sha)
    const [told] = await Promise.allSettled([ask(), lost])
    if (told.status === 'rejected') throw told.reason
    return told.value
  }

  /** The first claim of a store is sent twice by itself, for the clock: not the one to lose. */
  async function held(store: RedisStore) {
    const request = claimOf(fresh())
    const answer = await store.claim(request)
    if (!answer.claimed) throw new Error('it was not claimed')
    return { request, identity: request.identity, owner: request.owner, generation: answer.generation }
  }

  describe('ioredis sends the command again by itself', () => {
    let store: RedisStore

    beforeEach(async () => {
      store = await bench.store('ioredis', {}, proxy.port)
      await held(store)
    })

    test('a claim is recognised as one of its own', async () => {
      const request = claimOf(fresh())
      const before = proxy.sent(scripts.claim.sha)
      const answer = await losing('claim', () => store.claim(request))
      expect(proxy.sent(scripts.claim.sha)).toBe(before + 2)
      const seen = await store.find(request.identity, Date.now())
      expect(answer).toEqual({ claimed: true, generation: seen?.generation, attempts: 1 })
      expect(seen?.attempts).toBe(1)
    })

    test('a takeover is told as granted, under the generation that it got', async () => {
      const { identity, owner, generation } = await held(store)
      await lapse(bench.administrator, identity)
      const request = { ...claimOf(identity), seen: { owner, generation } }
      const granted = await losing('takeOver', () => store.takeOver(request))
      expect(proxy.sent(scripts.takeOver.sha)).toBe(2)
      const seen = await store.find(identity, Date.now())
      expect(granted).toEqual({ generation: seen?.generation, attempts: 2 })
      expect(seen?.owner).toBe(request.owner)
    })

    test('a completion is told as written, and one of another command is not', async () => {
      const { identity, owner } = await held(store)
      const completion = { identity, owner, outcome, retainMs: minuteMs }
      expect(await losing('complete', () => store.complete(completion))).toBe(true)
      expect(proxy.sent(scripts.complete.sha)).toBe(2)
      expect(await store.complete(completion)).toBe(false)
    })

    test('a release is told as written', async () => {
      const { identity, owner } = await held(store)
      expect(await losing('release', () => store.release({ identity, owner, retainMs: minuteMs }))).toBe(true)
      expect(proxy.sent(scripts.release.sha)).toBe(2)
    })

    test('a renewal is told as written', async () => {
      const { identity, owner } = await held(store)
      const renewals = [{ identity, owner, leaseMs: minuteMs }]
      expect(await losing('renew', () => store.renew(renewals))).toEqual([true])
    })

    test('an abandonment and an operator’s verdicts are told as written', async () => {
      const { operating } = store
      const { identity, owner, generation } = await held(store)
      await lapse(bench.administrator, identity)
      const verdict = { identity, generation, retainMs: minuteMs }
      expect(await losing('abandon', () => store.abandon({ ...verdict, owner }))).toBe(true)
      expect(await losing('resolveDone', () => operating.resolveDone({ ...verdict, outcome }))).toBe(true)
      const other = await held(store)
      await lapse(bench.administrator, other.identity)
      const free = { ...verdict, identity: other.identity, generation: other.generation }
      expect(await losing('resolveReleased', () => operating.resolveReleased(free))).toBe(true)
    })

    test('a resent takeover that a rival has overtaken is refused', async () => {
      const { identity, owner, generation } = await held(store)
      await lapse(bench.administrator, identity)
      const first = { ...claimOf(identity), seen: { owner, generation } }
      const granted = await store.takeOver(first)
      await lapse(bench.administrator, identity)
      const rival = {
        ...claimOf(identity),
        seen: { owner: first.owner, generation: granted?.generation ?? 0 },
      }
      expect(await store.takeOver(rival)).toBeDefined()
      expect(await store.takeOver(first)).toBeUndefined()
      expect((await store.find(identity, Date.now()))?.owner).toBe(rival.owner)
    })
  })

  describe('node-redis fails the command', () => {
    let store: RedisStore

    beforeEach(async () => {
      store = await bench.store('node-redis', {}, proxy.port)
      await held(store)
    })

    test('a claim that is asked again under its token is recognised', async () => {
      const request = claimOf(fresh())
      await expect(losing('claim', () => store.claim(request))).rejects.toThrow()
      const seen = await store.find(request.identity, Date.now())
      expect(await store.claim(request)).toEqual({
        claimed: true,
        generation: seen?.generation,
        attempts: 1,
      })
    })
  })

  describe.each(['ioredis', 'node-redis'] as const)('a whole call over %s', (client) => {
    test.each(['claim', 'complete', 'renew'] as const)(
      'runs the work once and gives its answer when the answer to %s is lost',
      async (name) => {
        const store = await bench.store(client, {}, proxy.port)
        await held(store)
        // The renewal comes a third of the lease in: only then is there one to lose.
        const safe = retrysafe({ store, leaseMs: name === 'renew' ? 1500 : 30_000 })
        const intent = { scope: 's', key: `k-${randomUUID()}` }
        let runs = 0
        const lost = proxy.loseAnswerTo(scripts[name].sha)
        const answer: Answer<string> = await safe.run(intent, async () => {
          runs += 1
          if (name === 'renew') await lost
          return 'sent'
        })
        await lost
        expect({ answer, runs }).toEqual({ answer: { value: 'sent', replayed: false }, runs: 1 })
        expect(await safe.run(intent, async () => 'again')).toEqual({ value: 'sent', replayed: true })
        await safe.close()
      },
    )

    test('frees the key when the answer to release is lost', async () => {
      const store = await bench.store(client, {}, proxy.port)
      const safe = retrysafe({ store })
      const intent = { scope: 's', key: `k-${randomUUID()}` }
      const lost = proxy.loseAnswerTo(scripts.release.sha)
      const failed = safe.run(intent, async () => Promise.reject(new Error('declined')))
      await expect(failed).rejects.toThrow('declined')
      await lost
      expect(await safe.run(intent, async () => 'again')).toEqual({ value: 'again', replayed: false })
      await safe.close()
    })
  })
})
