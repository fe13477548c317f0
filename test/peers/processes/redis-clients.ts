/** The clients of Redis that the store is proved over, each as a user would make it. */
import type { RedisHandle } from '../../processes/own-redis.js'
import { peer } from './peer.js'

export const clientNames = ['ioredis', 'node-redis', 'ioredis Cluster', 'node-redis cluster'] as const

export type ClientName = (typeof clientNames)[number]

export function isCluster(name: ClientName): boolean {
  return name === 'ioredis Cluster' || name === 'node-redis cluster'
}

export interface RedisClient {
  readonly handle: RedisHandle
  end(): Promise<void>
}

function ignore(): void {}

const makers: Record<ClientName, (ports: readonly number[]) => Promise<RedisClient>> = {
  ioredis: async ([port = 0]) => {
    const { Redis } = await peer<typeof import('ioredis')>('ioredis')
    const handle = new Redis({ port, host: '127.0.0.1' })
    handle.on('error', ignore)
    return { handle, end: async () => handle.disconnect() }
  },
  'node-redis': async ([port = 0]) => {
    const { createClient } = await peer<typeof import('redis')>('redis')
    const handle = createClient({ url: `redis://127.0.0.1:${port}` })
    handle.on('error', ignore)
    await handle.connect()
    return { handle, end: async () => handle.destroy() }
  },
  'ioredis Cluster': async (ports) => {
    const { Cluster } = await peer<typeof import('ioredis')>('ioredis')
    const handle = new Cluster(ports.map((port) => ({ host: '127.0.0.1', port })))
    handle.on('error', ignore)
    return { handle, end: async () => handle.disconnect() }
  },
  'node-redis cluster': async (ports) => {
    const { createCluster } = await peer<typeof import('redis')>('redis')
    const handle = createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })
    handle.on('error', ignore)
    await handle.connect()
    return { handle, end: async () => handle.destroy() }
  },
}

export function openClient(name: ClientName, ports: readonly number[]): Promise<RedisClient> {
  return makers[name](ports)
}
