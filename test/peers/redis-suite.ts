/** The store suite over one client of Redis, on servers of its own. */
import type { Redis as IoRedis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { storeSuite } from '../../dist/testing/index.js'
import { startRedis, startRedisCluster } from '../../servers/redis.js'
import { runSuite } from '../suites/run-suite.js'
import { type ClientName, isCluster } from './processes/redis-clients.js'
import { administrators, advance, type Opening, open, withoutExpiry } from './processes/redis-store.js'

export function redisSuite(client: ClientName): void {
  let opening: Opening
  let servers: readonly IoRedis[]
  let stop: () => Promise<void>

  beforeAll(async () => {
    const started = await start(client)
    stop = started.stop
    opening = { client, ports: started.ports }
    servers = await administrators(started.ports)
  })

  afterEach(async () => {
    expect(await withoutExpiry(servers), 'records that would stay for ever').toEqual([])
  })

  afterAll(async () => {
    for (const server of servers) server.disconnect()
    await stop()
  })

  runSuite(
    storeSuite<never>({
      open: () => open(opening),
      advance: (ms) => advance(servers, ms),
      lacks: {
        transactions: 'Redis shares no transaction with the work',
        sweeping: 'records expire by themselves',
        idleTimeout: 'Redis shares no transaction with the work',
      },
      processes: {
        module: new URL('../../build/test/peers/processes/redis-store.js', import.meta.url),
        // Read when a case starts its processes: by then there are servers.
        get data() {
          return opening
        },
      },
    }),
  )
}

async function start(
  client: ClientName,
): Promise<{ readonly ports: readonly number[]; stop(): Promise<void> }> {
  if (isCluster(client)) return startRedisCluster()
  const server = await startRedis()
  return { ports: [server.port], stop: server.stop }
}
