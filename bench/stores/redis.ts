/** Redis over both of its clients: one command is the work, a GET the bare read. */
import { retrysafe } from 'retrysafe'
import { type IoRedis, type NodeRedis, type RedisHandle, redis } from 'retrysafe/redis'
import { peer } from '../../servers/peers.js'
import { redisProgram, startRedis } from '../../servers/redis.js'
import { order, replyOf } from '../work.js'
import { leaseWay, type Server, type StoreBench, type Subject } from './store.js'

interface IoClient extends IoRedis {
  set(name: string, value: string): Promise<unknown>
  get(name: string): Promise<unknown>
  rpush(name: string, value: string): Promise<number>
  on(event: 'error', listener: () => void): unknown
  disconnect(): void
}
interface NodeClient {
  connect(): Promise<unknown>
  set(name: string, value: string): Promise<unknown>
  get(name: string): Promise<unknown>
  rPush(name: string, value: string): Promise<number>
  on(event: 'error', listener: () => void): unknown
  destroy(): void
}

/** The same four things from either client. */
interface Commands {
  readonly handle: RedisHandle
  readonly push: (name: string, value: string) => Promise<number>
  readonly set: (name: string, value: string) => Promise<unknown>
  readonly get: (name: string) => Promise<unknown>
  readonly end: () => void
}

/** As Redis is delivered: nothing waits for a disk, where a second command would be lost to sight. */
async function start(): Promise<Server> {
  const { url, stop } = await startRedis()
  try {
    const client = await connectIoredis(url)
    const said = await client.info()
    client.disconnect()
    return { at: url, what: `Redis ${/redis_version:(\S+)/.exec(said)?.[1]}`, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function connectIoredis(url: string): Promise<IoClient> {
  const { Redis } = await peer<{ Redis: new (url: string) => IoClient }>('ioredis')
  const client = new Redis(url)
  client.on('error', () => undefined)
  return client
}

async function openIoredis(at: string): Promise<Subject> {
  const client = await connectIoredis(at)
  return over({
    handle: client,
    push: (name, value) => client.rpush(name, value),
    set: (name, value) => client.set(name, value),
    get: (name) => client.get(name),
    end: () => client.disconnect(),
  })
}

async function openNodeRedis(at: string): Promise<Subject> {
  const { createClient } = await peer<{ createClient(options: { url: string }): NodeClient & NodeRedis }>(
    'redis',
  )
  const client = createClient({ url: at })
  client.on('error', () => undefined)
  await client.connect()
  return over({
    handle: client,
    push: (name, value) => client.rPush(name, value),
    set: (name, value) => client.set(name, value),
    get: (name) => client.get(name),
    end: () => client.destroy(),
  })
}

function over({ handle, push, set, get, end }: Commands): Subject {
  const safe = retrysafe({ store: redis(handle) })
  const row = JSON.stringify(order)
  return {
    lease: leaseWay(safe, async () => replyOf(String(await push('bench:orders', row)))),
    read: (key) => get(`bench:reply:${key}`),
    keep: async (keys) => {
      await Promise.all(keys.map((key) => set(`bench:reply:${key}`, JSON.stringify(replyOf('123456')))))
    },
    close: async () => {
      await safe.close()
      end()
    },
  }
}

export const redisBench: StoreBench = {
  id: 'redis',
  program: { path: redisProgram, debian: 'redis-server' },
  clients: [
    { id: 'ioredis', peers: ['ioredis'], open: openIoredis },
    // The server is asked for its version over ioredis.
    { id: 'node-redis', peers: ['ioredis', 'redis'], open: openNodeRedis },
  ],
  start,
}
