/**
 * The HTTP suite's harness for fetch-style servers: a Node server that hands each request over as a `Request` and sends the `Response`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { idempotencyOf, idempotent } from 'retrysafe/fetch'
import type { HttpRoute, HttpSite, Said } from 'retrysafe/testing'

type Handler = (request: Request) => Promise<Response>

export function caller(request: Request): string {
  return request.headers.get('authorization') ?? ''
}

/** Starts a server with the routes, matched by method and path. */
export async function start<Tx extends object>({ safe, routes }: HttpSite<Tx>) {
  const handlers = routes.map((route) => ({ matches: matcherOf(route), handle: mount(safe, route) }))
  return serveFetch(async (request) => {
    const { pathname } = new URL(request.url)
    const found = handlers.find(({ matches }) => matches(request.method, pathname))
    return found === undefined ? new Response(null, { status: 404 }) : found.handle(request)
  })
}

export async function serveFetch(handler: Handler) {
  const server = createServer((req, res) => {
    handle(handler, req, res).catch(() => {
      if (!res.headersSent) res.writeHead(500)
      res.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function matcherOf({ method, path }: { method: string; path: string }) {
  const pattern = new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`)
  return (asked: string, pathname: string) => asked === method.toUpperCase() && pattern.test(pathname)
}

function mount<Tx extends object>(safe: HttpSite<Tx>['safe'], route: HttpRoute<Tx>): Handler {
  if (route.kind === 'replies') {
    return idempotent(safe, route.options, (attempt) => route.run({ attempt, body: attempt.body }))
  }
  return idempotent(
    safe,
    route.options,
  )(async (request) => {
    const body = await request.json().catch(() => undefined)
    return answer(await route.run({ attempt: idempotencyOf<Tx>(request), body }))
  })
}

async function handle(handler: Handler, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const headers = new Headers()
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    headers.append(req.rawHeaders[at] ?? '', req.rawHeaders[at + 1] ?? '')
  }
  const { method = 'GET' } = req
  const hasBody = method !== 'GET' && method !== 'HEAD' && (req.headers['content-length'] ?? '0') !== '0'
  const chunked = req.headers['transfer-encoding'] !== undefined
  const request = new Request(`http://${req.headers.host}${req.url}`, {
    method,
    headers,
    ...((hasBody || chunked) && { body: Readable.toWeb(req) as ReadableStream, duplex: 'half' }),
  } as RequestInit)
  const response = await handler(request)
  res.statusCode = response.status
  for (const [name, value] of response.headers) res.appendHeader(name, value)
  if (response.body === null) {
    res.end()
    return
  }
  for await (const chunk of response.body) res.write(chunk)
  res.end()
}

function answer(said: Said): Response {
  if (said.do === 'throw') throw said.error
  const headers = new Headers('headers' in said ? said.headers : {})
  switch (said.do) {
    case 'json':
      headers.set('content-type', 'application/json; charset=utf-8')
      return new Response(JSON.stringify(said.value), { status: said.status, headers })
    case 'text':
      return new Response(said.text, { status: said.status, headers })
    case 'bytes':
      return new Response(Uint8Array.from(said.bytes), { status: said.status, headers })
    case 'stream':
    case 'writes':
      return new Response(streamOf(said.pieces), { status: said.status, headers })
    case 'empty':
      return new Response(null, { status: said.status, headers })
    case 'redirect':
      headers.set('location', said.location)
      return new Response(null, { status: said.status, headers })
    default:
      return said satisfies never
  }
}

function streamOf(pieces: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Uint8Array.from(Buffer.from(piece)))
      controller.close()
    },
  })
}
