/** A cluster that moves a slot, and one that has lost one of its three servers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { type Bench, claimOf, fresh, minuteMs, nameOf, openBench, outcome } from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')
const clients = ['ioredis Cluster', 'node-redis cluster'] as const

describe.skipIf(reason !== undefined).each(clients)(`a cluster over %s (${reason ?? 'Redis'})`, (client) => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench(client)
  })

  afterAll(() => bench?.close())

  test('finds a record before, while and after its slot moves to another server', async () => {
    const store = await bench.store(client)
    const [, to, from] = bench.administrators
    if (from === undefined || to === undefined) throw new Error('there are not three servers')
    const [fromId, toId] = [await from.cluster('MYID'), await to.cluster('MYID')]
    // Two names of one slot of the third server: what is hashed ends at the first brace.
    const [stays, comes] = ['a', 'b'].map((scope) => claimOf({ key: 'move}', scope }))
    if (stays === undefined || comes === undefined) throw new Error('there are not two requests')
    const slot = await from.cluster('KEYSLOT', nameOf(stays.identity))
    await store.claim(stays)
    await to.cluster('SETSLOT', slot, 'IMPORTING', fromId)
    await from.cluster('SETSLOT', slot, 'MIGRATING', toId)
    // One lies on the old server still; the other is new, and is made on the new one, which has never seen a script.
    expect(await store.renew([{ ...stays, leaseMs: minuteMs }])).toEqual([true])
    expect((await store.claim(comes)).claimed).toBe(true)
    expect((await store.claim(claimOf(comes.identity))).claimed).toBe(false)
    await from.migrate('127.0.0.1', to.options.port ?? 0, nameOf(stays.identity), 0, 5000)
    expect(await store.complete({ ...stays, outcome, retainMs: minuteMs })).toBe(true)
    for (const server of [to, from]) await server.cluster('SETSLOT', slot, 'NODE', toId)
    expect((await store.find(stays.identity, Date.now()))?.state).toBe('done')
    expect(await store.complete({ ...comes, outcome, retainMs: minuteMs })).toBe(true)
    expect(await to.exists(nameOf(comes.identity))).toBe(1)
  })

  test('renews the leases of the servers that live, and has no word on the others', async () => {
    const store = await bench.store(client)
    const requests = Array.from({ length: 60 }, () => claimOf(fresh()))
    await Promise.all(requests.map((request) => store.claim(request)))
    const third = bench.servers[2]
    const lost = await Promise.all(
      requests.map(async ({ identity }) => {
        const slot = Number(await bench.administrators[0]?.cluster('KEYSLOT', nameOf(identity)))
        return slot >= Math.ceil((2 * 16_384) / 3)
      }),
    )
    expect(new Set(lost).size).toBe(2)
    await third?.kill()
    const renewals = requests.map((request) => ({ ...request, leaseMs: minuteMs / 20 }))
    const answers = await store.renew(renewals)
    expect(answers).toEqual(lost.map((gone) => (gone ? undefined : true)))
    await third?.restart()
  })
})
