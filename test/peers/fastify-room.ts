/** A Fastify application on a port of its own, and what its own tests send to it. */
import type { AddressInfo } from 'node:net'
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify'
import { idempotent } from '../../dist/http/fastify.js'
import { type Retrysafe, type RetrysafeOptions, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type Got, type Sending, send } from '../../dist/testing/http/wire.js'

export type Mode = 'transaction' | 'lease'
export const modes: readonly Mode[] = ['transaction', 'lease']

type Options = Partial<RetrysafeOptions<MemoryTx>>

export interface Room {
  readonly app: FastifyInstance
  readonly safe: Retrysafe<MemoryTx>
  readonly port: number
  post(path?: string, sending?: Sending): Promise<Got>
}

/** Builds an application, and lets the body send to it. */
export async function inRoom(
  build: (app: FastifyInstance, safe: Retrysafe<MemoryTx>) => unknown,
  body: (room: Room) => Promise<void>,
  { server = {}, ...options }: Options & { readonly server?: FastifyServerOptions } = {},
): Promise<void> {
  const safe = retrysafe<MemoryTx>({ store: memory(), scope: 's', mode: 'transaction', ...options })
  const app = fastify({ forceCloseConnections: true, ...server })
  try {
    await build(app, safe)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    await body({
      app,
      safe,
      port,
      post: (path = '/orders', sending = {}) => send(url + path, { json: { total: 1 }, ...sending }),
    })
  } finally {
    await app.close()
    await safe.close()
  }
}

export const shown = ({ status, body, replayed }: Got) => ({ status, body: body.toString(), replayed })

export const random = () => `order ${Math.random()}`

export type Answer = (request: FastifyRequest, reply: FastifyReply) => unknown

/** A route behind the plugin. */
export async function around(app: FastifyInstance, safe: Retrysafe<MemoryTx>, answer: Answer): Promise<void> {
  await app.register(idempotent(safe))
  app.post('/orders', answer as (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>)
}
