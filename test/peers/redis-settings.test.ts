/** Clients set up in ways that change names or replies: records are the same. */
import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, RESP_TYPES } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisHandle, redis } from '../../dist/stores/redis.js'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { type Bench, claimOf, minuteMs, openBench } from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')

interface Opened {
  readonly handle: RedisHandle
  end(): unknown
}

function quiet<Client extends { on(event: 'error', listener: () => void): unknown }>(client: Client): Client {
  client.on('error', () => undefined)
  return client
}

function ofIoRedis(handle: Redis | Cluster): Opened {
  return { handle: quiet(handle), end: () => handle.disconnect() }
}

const ways: Readonly<Record<string, (ports: readonly number[], url: string) => Promise<Opened>>> = {
  'ioredis with a prefix that is a pattern': async ([port = 0]) =>
    ofIoRedis(new Redis(port, { keyPrefix: 'a*[b]?\\:' })),
  'ioredis with numbers as strings, batching by itself': async ([port = 0]) =>
    ofIoRedis(new Redis(port, { stringNumbers: true, enableAutoPipelining: true })),
  'ioredis in another database': async ([port = 0]) => ofIoRedis(new Redis(port, { db: 3 })),
  'node-redis in RESP 2, with a prefix': async (_, url) => {
    const client = await quiet(createClient({ url, RESP: 2, keyPrefix: 'b:' })).connect()
    return { handle: client, end: () => client.destroy() }
  },
  'node-redis with bytes for strings': async (_, url) => {
    const client = await quiet(createClient({ url })).connect()
    return {
      handle: client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String }),
      end: () => client.destroy(),
    }
  },
  'a pool of node-redis': async (_, url) => {
    const pool = quiet(createClientPool({ url }))
    await pool.connect()
    return { handle: pool, end: () => pool.destroy() }
  },
}

const clusterWays: typeof ways = {
  'an ioredis Cluster with a prefix that has a hash tag, batching by itself': async ([port = 0]) =>
    ofIoRedis(new Cluster([{ port, host: '127.0.0.1' }], { keyPrefix: '{t}:', enableAutoPipelining: true })),
  'a node-redis cluster with a prefix': async (_, url) => {
    const cluster = quiet(createCluster({ rootNodes: [{ url }], keyPrefix: 'c:' }))
    await cluster.connect()
    return { handle: cluster, end: () => cluster.destroy() }
  },
}

const kinds = [
  ['ioredis', ways],
  ['ioredis Cluster', clusterWays],
] as const

describe.skipIf(reason !== undefined).each(kinds)(`settings (${reason ?? 'Redis'}), %s`, (kind, all) => {
  let bench: Bench

  beforeAll(async () => {
    bench = await openBench(kind)
  })

  afterAll(() => bench?.close())

  test.each(Object.keys(all))('%s: records are written, read, listed and counted', async (way) => {
    const opened = await all[way]?.(bench.ports, bench.servers[0]?.url ?? '')
    if (opened === undefined) throw new Error('there is no such way')
    const prefix = `p${Object.keys(all).indexOf(way)}:`
    const store = redis(opened.handle, { prefix })
    const identity = { key: 'caf\u00e9{x}', scope: '}s' }
    const request = claimOf(identity)
    const outcome = Uint8Array.from({ length: 256 }, (_, index) => index)
    expect((await store.claim(request)).claimed).toBe(true)
    expect((await store.claim(claimOf(identity))).claimed).toBe(false)
    expect(await store.renew([{ ...request, leaseMs: minuteMs }])).toEqual([true])
    expect(await store.complete({ ...request, outcome, retainMs: minuteMs })).toBe(true)
    const seen = await store.find(identity, Date.now())
    expect(seen?.outcome && Buffer.compare(seen.outcome, outcome)).toBe(0)
    expect((await store.operating.list({ limit: 5 })).map((row) => row.identity)).toEqual([identity])
    expect(await store.operating.count()).toMatchObject({ done: 1, running: 0 })
    expect((await store.inspecting.inspect()).map(({ id }) => id)).toContain('maxmemory-policy')
    await opened.end()
  })
})
