/** A server, a store over one of the clients, and requests with what a test does not care about filled in. */
import { randomUUID } from 'node:crypto'
import type { Redis as IoRedis } from 'ioredis'
import type { ClaimRequest, Identity } from '../../dist/store.js'
import { type RedisOptions, type RedisStore, redis } from '../../dist/stores/redis.js'
import {
  type RedisServer,
  type RedisOptions as ServerOptions,
  startRedis,
  startRedisCluster,
} from '../../servers/redis.js'
import { type ClientName, isCluster, openClient } from './processes/redis-clients.js'
import { administrators } from './processes/redis-store.js'

export const minuteMs = 60_000
export const outcome = Uint8Array.of(1, 2, 3)

export interface Bench {
  readonly servers: readonly RedisServer[]
  readonly ports: readonly number[]
  /** Past the store, one for each server. */
  readonly administrators: readonly IoRedis[]
  /** Past the store, where there is one server. */
  readonly administrator: IoRedis
  /** A store over a client of its own, through a proxy if it is told a port. */
  store(client: ClientName, options?: RedisOptions, port?: number): Promise<RedisStore>
  close(): Promise<void>
}

export async function openBench(kind: ClientName, options: ServerOptions = {}): Promise<Bench> {
  const { servers, stop } = await started(kind, options)
  const ports = servers.map(({ port }) => port)
  const all = await administrators(ports)
  const [administrator] = all
  if (administrator === undefined) throw new Error('no server was started')
  const endings: (() => Promise<void>)[] = []

  async function store(client: ClientName, of: RedisOptions = {}, port?: number): Promise<RedisStore> {
    const { handle, end } = await openClient(client, port === undefined ? ports : [port])
    endings.push(end)
    return redis(handle, of)
  }

  async function close(): Promise<void> {
    for (const end of endings) await end()
    for (const one of all) one.disconnect()
    await stop()
  }

  return { servers, ports, administrators: all, administrator, store, close }
}

async function started(
  kind: ClientName,
  options: ServerOptions,
): Promise<{ readonly servers: readonly RedisServer[]; stop(): Promise<void> }> {
  if (isCluster(kind)) return startRedisCluster(options)
  const server = await startRedis(options)
  return { servers: [server], stop: server.stop }
}

export function fresh(): Identity {
  return { key: `k-${randomUUID()}`, scope: 's' }
}

export function claimOf(identity: Identity, more: Partial<ClaimRequest> = {}): ClaimRequest {
  const owner = randomUUID()
  return {
    identity,
    owner,
    fingerprint: Uint8Array.of(1, 2),
    leaseMs: minuteMs,
    callerNowMs: Date.now(),
    ...more,
  }
}

/** The name that the store gives a record. */
export function nameOf({ key, scope }: Identity): string {
  return `retrysafe:{${key.length}:${key}${scope}}`
}

/** Changes a word of a stored record, as `1 state generation attempts endsMs …` counts them from 0; the expiry stays. */
export async function changeWord(
  server: IoRedis,
  identity: Identity,
  index: number,
  word: string,
): Promise<void> {
  const words = ((await server.get(nameOf(identity))) ?? '').split(' ')
  words[index] = word
  await server.set(nameOf(identity), words.join(' '), 'KEEPTTL')
}

/** Ends a lease, as if its time had passed. */
export function lapse(server: IoRedis, identity: Identity): Promise<void> {
  return changeWord(server, identity, 4, '1')
}
