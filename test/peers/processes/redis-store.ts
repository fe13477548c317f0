/** The store suite's harness for Redis: loaded by the test itself and by the processes that it starts. */
import type { Redis as IoRedis } from 'ioredis'
import { type OpenedStore, redis } from '../../processes/own-redis.js'
import { peer } from './peer.js'
import { type ClientName, openClient } from './redis-clients.js'

/** How a client is opened; a process is sent the same. */
export interface Opening {
  readonly client: ClientName
  readonly ports: readonly number[]
}

/** Processes are sent an {@link Opening} as data of no type. */
export async function open(opening: unknown): Promise<OpenedStore<never>> {
  const { client, ports } = opening as Opening
  const { handle, end } = await openClient(client, ports)
  return { store: redis(handle), close: end }
}

/** Connections of the test's own, past the store: one to each server. */
export async function administrators(ports: readonly number[]): Promise<readonly IoRedis[]> {
  const { Redis } = await peer<typeof import('ioredis')>('ioredis')
  return ports.map((port) => {
    const administrator = new Redis({ port, host: '127.0.0.1' })
    administrator.on('error', () => undefined)
    return administrator
  })
}

/** Goes over the keys of one server; `body` does something to `key`. */
function each(body: string): string {
  return `
local cursor = '0'
local names = {}
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, name in ipairs(page[2]) do names[name] = true end
until cursor == '0'
for key in pairs(names) do ${body} end`
}

/** As if the clock had moved: every end comes closer, and so does the expiry, which may be past now. */
const shift = each(`
  local value = redis.call('GET', key)
  local leftMs = redis.call('PTTL', key) - ARGV[1]
  if leftMs <= 0 then
    redis.call('DEL', key)
  elseif value then
    local head, endsMs, rest = string.match(value, '^(1 %l+ %d+ %d+ )(%d+)( .*)$')
    local moved = head .. string.format('%.0f', endsMs - ARGV[1]) .. rest
    redis.call('SET', key, moved, 'PX', leftMs)
  end`)

export async function advance(servers: readonly IoRedis[], ms: number): Promise<void> {
  await Promise.all(servers.map((server) => server.eval(shift, 0, String(ms))))
}

/** Every record that could stay for ever. */
const lasting = `local found = {} ${each(`if redis.call('PTTL', key) == -1 then found[#found + 1] = key end`)} return found`

export async function withoutExpiry(servers: readonly IoRedis[]): Promise<readonly string[]> {
  return (await Promise.all(servers.map((server) => server.eval(lasting, 0) as Promise<string[]>))).flat()
}
