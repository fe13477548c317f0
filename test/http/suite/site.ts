/**
 * An Express application on a real port, and clients that see bytes: what the HTTP tests of every Express version share.
 */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Express, NextFunction, Request, Response } from 'express'
import { type Retrysafe, type RetrysafeOptions, retrysafe } from 'retrysafe'
import { type MemoryStore, type MemoryTx, memory } from 'retrysafe/memory'

/** The module under test; Express 4 has no types here, and what is used of it is the same. */
export type ExpressModule = typeof import('express')

export type Mode = 'transaction' | 'lease'
export const modes: readonly Mode[] = ['transaction', 'lease']

export interface Site {
  readonly app: Express
  readonly safe: Retrysafe<MemoryTx>
  readonly url: string
  readonly port: number
  /** What reached the application's error handler. */
  readonly errors: unknown[]
  send(path: string, how?: Sending): Promise<Answer>
  close(): Promise<void>
}

export interface Sending {
  readonly key?: string | null
  readonly method?: string
  readonly json?: unknown
  readonly body?: string | Uint8Array | FormData
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
  readonly replayed: boolean
  json(): Body
}

type Body = ReturnType<typeof JSON.parse>

/** Starts an application; `build` mounts its routes, an error handler that notes and answers is mounted behind them. */
export async function site(
  express: ExpressModule,
  build: (app: Express, safe: Retrysafe<MemoryTx>) => void,
  options: Partial<RetrysafeOptions<MemoryTx>> & { readonly store?: MemoryStore } = {},
): Promise<Site> {
  const safe = retrysafe<MemoryTx>({ store: memory(), scope: 'caller', mode: 'transaction', ...options })
  const app = express()
  const errors: unknown[] = []
  build(app, safe)
  app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
    errors.push(error)
    if (res.headersSent) return next(error)
    const { status } = error as { status?: number }
    res.status(status ?? 500).json({ error: error instanceof Error ? error.message : String(error) })
  })
  const server = await listen(app as unknown as RequestListener)
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    app,
    safe,
    url,
    port,
    errors,
    send: (path, how) => send(url + path, how),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await safe.close()
    },
  }
}

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function send(
  url: string,
  { key = 'k1', method = 'POST', json, ...how }: Sending = {},
): Promise<Answer> {
  const headers = new Headers(how.headers)
  if (key !== null) headers.set('idempotency-key', key)
  if (json !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
  const body = json === undefined ? how.body : JSON.stringify(json)
  const response = await fetch(url, {
    method,
    headers,
    redirect: 'manual',
    ...(body !== undefined && { body: body as string }),
    ...(how.signal && { signal: how.signal }),
  })
  return answerOf(response)
}

async function answerOf(response: globalThis.Response): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString('utf8')
  const { status, headers } = response
  const replayed = headers.get('idempotent-replayed') === 'true'
  return { status, headers, bytes, text, replayed, json: () => JSON.parse(text) }
}

/** A connection that shows what came over the wire, byte for byte. */
export interface Wire {
  readonly socket: Socket
  received(): string
  write(text: string | Uint8Array): void
  /** Resolves when `text` has come, or the connection is over. */
  sees(text: string): Promise<string>
  closed: Promise<void>
  hangUp(): void
}

export function wire(port: number): Wire {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  // A connection cut by the server ends in an error here; that it is over is what counts.
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))

  function sees(text: string): Promise<string> {
    return new Promise((resolve) => {
      const look = () => {
        if (!received.includes(text) && !socket.closed) return
        socket.removeListener('data', look)
        socket.removeListener('close', look)
        resolve(received)
      }
      socket.on('data', look)
      socket.on('close', look)
      look()
    })
  }

  return {
    socket,
    received: () => received,
    write: (text) => void socket.write(text),
    sees,
    closed,
    hangUp: () => socket.destroy(),
  }
}

/** The text of a request with a key. */
export function requestText(path: string, body = '', headers: Record<string, string> = {}): string {
  const all = {
    host: 'localhost',
    'idempotency-key': 'k1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

/** A promise to be settled from outside. */
export function gate<Value = void>() {
  let open: (value: Value) => void = () => undefined
  const opened = new Promise<Value>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** The memory store with some of its functions replaced. */
export function storeWith(change: (real: MemoryStore) => Partial<MemoryStore>): MemoryStore {
  const real = memory()
  return { ...real, ...change(real) }
}

/** A memory store whose outcome waits at the door: `asked` when it is about to be written, written once `open` is called. */
export function gatedStore(): { store: MemoryStore; asked: Promise<void>; open: () => void } {
  const asked = gate()
  const door = gate()
  const store = storeWith((real) => ({
    complete: async (completion) => {
      asked.open()
      await door.opened
      return real.complete(completion)
    },
    transactions: {
      ...real.transactions,
      begin: async (request) => {
        const open = await real.transactions.begin(request)
        const save: typeof open.save = async (wish) => {
          asked.open()
          await door.opened
          return open.save(wish)
        }
        return Object.create(open, { save: { value: save } })
      },
    },
  }))
  return { store, asked: asked.opened, open: () => door.open() }
}
