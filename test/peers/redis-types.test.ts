/** Our restatement of the clients' types, held against the real ones: drift fails this build, not the user's. */
import type { Cluster, Redis } from 'ioredis'
import type { createClient, createClientPool, createCluster, RedisClientType, RedisClusterType } from 'redis'
import { expectTypeOf, test } from 'vitest'
import { idempotent } from '../../dist/http/express.js'
import { type Answer, reply, retrysafe } from '../../dist/index.js'
import {
  type IoRedis,
  type IoRedisCluster,
  type NodeRedis,
  type NodeRedisCluster,
  type RedisHandle,
  redis,
} from '../../dist/stores/redis.js'

test('the clients of ioredis fit what the store asks for', () => {
  expectTypeOf<Redis>().toExtend<IoRedis>()
  expectTypeOf<Cluster>().toExtend<IoRedisCluster>()
})

test('the clients of node-redis fit what the store asks for', () => {
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<NodeRedis>()
  expectTypeOf<RedisClientType>().toExtend<NodeRedis>()
  expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<NodeRedis>()
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<NodeRedisCluster>()
  expectTypeOf<RedisClusterType>().toExtend<NodeRedisCluster>()
})

test('what a user has in hand compiles, in any configuration', () => {
  const use = (
    client: ReturnType<
      typeof createClient<Record<string, never>, Record<string, never>, Record<string, never>, 2>
    >,
    mapped: ReturnType<ReturnType<typeof createClient>['withTypeMapping']>,
  ) => {
    expectTypeOf(redis(client).guarantees.fenced).toEqualTypeOf<boolean>()
    expectTypeOf(redis(mapped)).toHaveProperty('operating')
  }
  expectTypeOf(use).toBeFunction()
})

test('an instance on it goes where instances go', () => {
  const use = (client: Redis) => {
    const safe = retrysafe({ store: redis(client), mode: 'lease', scope: () => 's' })
    expectTypeOf(idempotent(safe, {}, ({ attempt }) => reply(200, { attempt }))).toBeFunction()
    return safe.run({ scope: 's', key: 'k' }, async ({ generation }) => generation)
  }
  expectTypeOf(use).returns.resolves.toEqualTypeOf<Answer<number>>()
})

test('what is no client does not compile', () => {
  expectTypeOf<{ get(key: string): Promise<string> }>().not.toExtend<RedisHandle>()
})
