/** Applications of Hono on a port of their own, and a client: what its tests share. */
import type { Hono } from 'hono'
import type { HonoVariables } from '../../dist/http/hono.js'
import { type RetrysafeOptions, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { listen } from './hono-site.js'

export type Env = { Variables: HonoVariables<MemoryTx> }
export type Mode = 'transaction' | 'lease'
export const modes = ['transaction', 'lease'] as const

export function setUp(mode: Mode, options: Partial<RetrysafeOptions<MemoryTx>> = {}) {
  return retrysafe<MemoryTx>({ store: memory(), mode, scope: 's', ...options })
}

export async function on(app: Hono<Env>, body: (url: string) => Promise<void>): Promise<void> {
  const server = await listen(app)
  try {
    await body(server.url)
  } finally {
    await server.close()
  }
}

export function post(url: string, body?: RequestInit['body'], init: RequestInit = {}): Promise<Response> {
  const headers = { 'idempotency-key': 'k1', ...(init.headers as Record<string, string>) }
  return fetch(`${url}/orders`, { method: 'POST', ...(body !== undefined && { body }), ...init, headers })
}

export const isReplay = ({ headers }: Response) => headers.get('idempotent-replayed') === 'true'
