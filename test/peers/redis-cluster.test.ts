/** A cluster that has lost one of its three servers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { type Bench, claimOf, fresh, minuteMs, nameOf, openBench } from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')
const clients = ['ioredis Cluster', 'node-redis cluster'] as const

describe.skipIf(reason !== undefined).each(clients)(`a cluster over %s (${reason ?? 'Redis'})`, (client) => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench(client)
  })

  afterAll(() => bench?.close())

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
