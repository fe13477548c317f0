/** The examples of docs/redis.md, run on a server of their own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, redisProgram, startRedis } from '../../servers/redis.js'
import { allBlocks } from '../docs/blocks.js'
import { type Compiled, compile } from '../docs/compile.js'
import { missing } from './debian.js'

const reason = missing(redisProgram, 'redis-server')

describe.skipIf(reason !== undefined)(`docs/redis.md (${reason ?? 'Redis'})`, () => {
  let server: RedisServer
  let compiled: Compiled

  beforeAll(async () => {
    server = await startRedis()
    process.env.REDIS_URL = server.url
    Object.assign(globalThis, { user: { id: 'u1' } })
    compiled = await compile(
      allBlocks({ needPeers: true }).filter(({ at }) => at.startsWith('docs/redis.md')),
    )
  })

  afterAll(async () => {
    compiled?.remove()
    await server?.stop()
  })

  test('over ioredis a retry is the first answer', async () => {
    expect(compiled.complaints).toBe('')
    const { calls, first, second } = await compiled.run<Record<string, unknown>>('redis-ioredis')
    const value = { messageId: 'm1' }
    expect({ calls, first, second }).toEqual({
      calls: 1,
      first: { value, replayed: false },
      second: { value, replayed: true },
    })
  })

  test('over node-redis the work runs and its answer is stored', async () => {
    const { value, replayed } = await compiled.run<Record<string, unknown>>('redis-node-redis')
    expect({ value, replayed }).toEqual({ value: 'sent', replayed: false })
  })
})
