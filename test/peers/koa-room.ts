/** A Koa application on a port of its own, and what its own tests send to it. */
import type { RequestListener } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import { idempotent } from '../../dist/http/koa.js'
import { type Retrysafe, type RetrysafeOptions, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'
import { type Got, type Sending, send } from '../../dist/testing/http/wire.js'
import { listen } from './koa-site.js'

export interface Room {
  readonly port: number
  post(path?: string, sending?: Sending): Promise<Got>
  /** What the application's `error` event has told. */
  readonly errors: readonly Error[]
}

type Options = Partial<RetrysafeOptions<MemoryTx>> & { readonly http2?: boolean }

/** Builds an application, and lets the body send to it. */
export async function inRoom(
  build: (app: Koa, safe: Retrysafe<MemoryTx>) => unknown,
  body: (room: Room) => Promise<void>,
  { http2 = false, ...options }: Options = {},
): Promise<void> {
  const safe = retrysafe<MemoryTx>({ store: memory(), scope: 's', mode: 'transaction', ...options })
  const app = new Koa()
  const errors: Error[] = []
  app.on('error', (error: Error) => errors.push(error))
  build(app, safe)
  const server = await listen(app.callback() as RequestListener, http2)
  try {
    await body({
      port: Number(new URL(server.url).port),
      post: (path = '/orders', sending = {}) => send(server.url + path, { json: { total: 1 }, ...sending }),
      errors,
    })
  } finally {
    await server.close()
    await safe.close()
  }
}

/** A handler behind the middleware. */
export function around(app: Koa, safe: Retrysafe<MemoryTx>, handler: (ctx: Context) => unknown): void {
  app.use(idempotent(safe))
  app.use(handler as Middleware)
}
