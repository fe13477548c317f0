/** What a doctor is told about the servers behind the store. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisOptions, redis } from '../../dist/stores/redis.js'
import { type RedisServer, redisProgram, startRedis } from '../../servers/redis.js'
import { missing } from './debian.js'
import { clientNames } from './processes/redis-clients.js'
import { openBench } from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')

describe.skipIf(reason !== undefined)(`findings (${reason ?? 'Redis'})`, () => {
  let server: RedisServer
  let client: Redis

  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.port)
  })

  afterAll(async () => {
    client?.disconnect()
    await server?.stop()
  })

  async function levels(options: RedisOptions = {}, of = client): Promise<Readonly<Record<string, string>>> {
    const findings = await redis(of, options).inspecting.inspect()
    return Object.fromEntries(findings.map(({ id, level }) => [id, level]))
  }

  test('a server that keeps nothing over a crash is told of, and belies who says otherwise', async () => {
    const good = { writable: 'ok', version: 'ok', 'maxmemory-policy': 'ok', replication: 'ok', clock: 'ok' }
    expect(await levels()).toEqual({ ...good, appendonly: 'warn' })
    const declared = { survivesCrash: true }
    expect(await levels(declared)).toEqual({ ...good, appendonly: 'error' })
    await client.config('SET', 'appendonly', 'yes')
    expect(await levels(declared)).toEqual({ ...good, appendonly: 'ok', appendfsync: 'ok' })
    await client.config('SET', 'appendfsync', 'everysec')
    expect(await levels(declared)).toEqual({ ...good, appendonly: 'ok', appendfsync: 'error' })
    expect(await levels()).toMatchObject({ appendonly: 'ok', appendfsync: 'note' })
    await client.config('SET', 'appendfsync', 'no')
    expect(await levels()).toMatchObject({ appendfsync: 'warn' })
  })

  test('a server that drops records when memory is short is an error, and one that could a warning', async () => {
    await client.config('SET', 'maxmemory-policy', 'volatile-lru')
    expect(await levels()).toMatchObject({ 'maxmemory-policy': 'warn' })
    await client.config('SET', 'maxmemory', '1gb')
    expect(await levels()).toMatchObject({ 'maxmemory-policy': 'error' })
    await client.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction')
  })

  test('a server that answers questions and takes no write is an error, and asking it writes nothing', async () => {
    await client.config('SET', 'min-replicas-to-write', '1')
    expect(await levels()).toMatchObject({ writable: 'error' })
    await client.config('SET', 'min-replicas-to-write', '0', 'maxmemory', '1')
    expect(await levels()).toMatchObject({ writable: 'error' })
    await client.config('SET', 'maxmemory', '0')
    await client.acl('SETUSER', 'reader', 'on', '>secret', '~*', '+@all', '-set')
    const reader = new Redis(server.port, { username: 'reader', password: 'secret' })
    expect(await levels({}, reader)).toMatchObject({ writable: 'error' })
    reader.disconnect()
    const primary = await startRedis()
    await client.replicaof('127.0.0.1', primary.port)
    expect(await levels()).toMatchObject({ writable: 'error' })
    await client.replicaof('NO', 'ONE')
    await primary.stop()
    expect(await levels()).toMatchObject({ writable: 'ok' })
    expect(await client.dbsize()).toBe(0)
  })

  test('a server that refuses to tell is a note, and no answer at all an error', async () => {
    await client.acl('SETUSER', 'plain', 'on', '>secret', '~*', '+@all', '-config')
    const plain = new Redis(server.port, { username: 'plain', password: 'secret' })
    expect(await levels({}, plain)).toMatchObject({ appendonly: 'ok', appendfsync: 'note' })
    await client.acl('SETUSER', 'plain', '-info')
    expect(await levels({}, plain)).toEqual({ writable: 'ok', info: 'note' })
    plain.disconnect()
    await expect(levels({}, plain)).rejects.toThrow()
  })
})

describe.skipIf(reason !== undefined).each(clientNames)(
  `findings over %s (${reason ?? 'Redis'})`,
  (client) => {
    test('are made for each primary', async () => {
      const bench = await openBench(client)
      const store = await bench.store(client)
      const findings = await store.inspecting.inspect()
      const versions = findings.filter(({ id }) => id === 'version')
      expect(versions.map(({ level }) => level)).toEqual(bench.servers.map(() => 'ok'))
      expect(new Set(versions.map(({ found }) => found)).size).toBe(bench.servers.length)
      await bench.close()
    })
  },
)
