/** Which driver a client gets: told by its shape, never by importing its package, so that the package stays the user's. */
import { fail } from '../../errors.js'
import type { Driver } from './driver.js'
import { type IoRedis, type IoRedisCluster, ioRedis } from './ioredis.js'
import { type NodeRedis, type NodeRedisCluster, nodeRedis } from './node-redis.js'

/** A client that {@link redis} knows by its shape. */
export type RedisHandle = IoRedis | IoRedisCluster | NodeRedis | NodeRedisCluster

export function driverFor(handle: RedisHandle): Driver {
  if (has(handle, 'evalsha')) return ioRedis(handle as IoRedis | IoRedisCluster)
  if (has(handle, 'evalSha')) return nodeRedis(handle as NodeRedis | NodeRedisCluster)
  throw fail('OPTION_INVALID', {
    detail:
      'redis() takes a Redis or Cluster of ioredis, or what createClient or createCluster of node-redis gave',
  })
}

function has(handle: unknown, method: string): boolean {
  const called = (handle as Record<string, unknown> | null | undefined)?.[method]
  return typeof called === 'function'
}
