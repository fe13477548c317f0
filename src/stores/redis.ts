/**
 * The store on Redis 6.2 and later, over the client that the user has: lease mode only, for work that has no database row of its own.
 *
 * The server runs one script at a time: that is who decides (rule 1). Its clock judges leases, and its expiry is the sweeper (rule 38). What it
 * has acknowledged it may still forget, in a crash, a failover or an eviction: then an owner is refused, and the work may run again.
 */
import { longestTimerMs } from '../clock.js'
import { fail } from '../errors.js'
import type { Inspecting, Operating, Store } from '../store.js'
import { patient } from './redis/driver.js'
import { driverFor, type RedisHandle } from './redis/handles.js'
import { inspecting } from './redis/inspecting.js'
import { leaseMode } from './redis/lease-mode.js'
import { operating } from './redis/upkeep.js'

export type { RedisHandle } from './redis/handles.js'
export type { IoRedis, IoRedisCluster } from './redis/ioredis.js'
export type { NodeRedis, NodeRedisCluster } from './redis/node-redis.js'

/** Options of {@link redis}. */
export interface RedisOptions {
  /** What the name of every record begins with: 1 to 64 letters, digits and `_ . : -`. Default `retrysafe:`. */
  readonly prefix?: string
  /**
   * How long a record is remembered that is unfinished: running with an owner that went silent, unknown, dead, or with steps; in ms, at least one
   * hour. A retry that comes later finds nothing and runs. Default 30 days (rule 19).
   */
  readonly unfinishedRetainMs?: number
  /**
   * How long Redis may take to answer, in ms; then it counts as down. Clients keep commands while there is no connection, some of them for
   * ever. Default 10 s.
   */
  readonly answerTimeoutMs?: number
  /**
   * Whether the servers are set to `appendonly yes` and `appendfsync always`: then what they acknowledged outlives their process and their machine,
   * and the store's guarantees say so. It is your word, which `inspecting` checks. `everysec` is not enough: while a flush is under way, Redis answers
   * before it has written. Default false.
   */
  readonly survivesCrash?: boolean
}

/** A {@link Store} on Redis, for lease mode; records end by themselves, and there is nothing to migrate. */
export interface RedisStore extends Store<never> {
  readonly operating: Operating
  readonly inspecting: Inspecting
}

/** A shorter memory than this would forget a crash before its retry has come. */
const leastUnfinishedMs = 60 * 60_000

/**
 * Keeps records in Redis, a single server or a cluster, one key for each.
 *
 * Costs one round trip before the work and one after it. A list or a count reads every record.
 *
 * @param client A `Redis` or `Cluster` of ioredis 5, or a client, pool or cluster of node-redis 5 or later that was connected. It stays the caller's.
 * @throws `OPTION_INVALID` for an option or a client that cannot be right.
 *
 * @example
 * ```ts
 * import { type RedisHandle, redis } from 'retrysafe/redis'
 * // A client of ioredis or node-redis, made as you make it.
 * const safeOn = (client: RedisHandle) => retrysafe({ store: redis(client), mode: 'lease' })
 * ```
 */
export function redis(client: RedisHandle, options: RedisOptions = {}): RedisStore {
  const { prefix, unfinishedRetainMs, answerTimeoutMs, survivesCrash } = checked(options)
  const ledger = {
    redis: patient(driverFor(client), answerTimeoutMs),
    prefix,
    unfinishedRetainMs,
    answerTimeoutMs,
  }
  return {
    name: 'redis',
    guarantees: { atomicWithEffect: false, survivesCrash, fenced: true },
    ...leaseMode(ledger),
    operating: operating(ledger),
    inspecting: inspecting(ledger.redis, prefix, survivesCrash),
  }
}

function checked(options: RedisOptions) {
  const { prefix = 'retrysafe:', unfinishedRetainMs = 30 * 24 * 60 * 60_000 } = options
  const { answerTimeoutMs = 10_000, survivesCrash = false } = options
  // A brace would move where the slot of a record is computed from.
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,64}$/.test(prefix))
    throw fail('OPTION_INVALID', { detail: 'prefix must be 1 to 64 letters, digits or any of _ . : -' })
  if (!Number.isSafeInteger(unfinishedRetainMs) || unfinishedRetainMs < leastUnfinishedMs)
    throw fail('OPTION_INVALID', {
      detail: `unfinishedRetainMs must be a whole number of milliseconds, at least ${leastUnfinishedMs}`,
    })
  if (!Number.isSafeInteger(answerTimeoutMs) || answerTimeoutMs < 1 || answerTimeoutMs > longestTimerMs)
    throw fail('OPTION_INVALID', { detail: 'answerTimeoutMs must be a whole number of milliseconds' })
  if (typeof survivesCrash !== 'boolean')
    throw fail('OPTION_INVALID', { detail: 'survivesCrash must be true or false' })
  return { prefix, unfinishedRetainMs, answerTimeoutMs, survivesCrash }
}
