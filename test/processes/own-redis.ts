/** The Redis store under the package's own name, for what lies below `test/peers`, whose manifest has another name. */

export { isRetrysafeError, retrysafe } from 'retrysafe'
export {
  type IoRedis,
  type IoRedisCluster,
  type NodeRedis,
  type NodeRedisCluster,
  type RedisHandle,
  type RedisOptions,
  type RedisStore,
  redis,
} from 'retrysafe/redis'
export type { OpenedStore } from 'retrysafe/testing'
