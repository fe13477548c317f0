/**
 * The HTTP suite's harness for AWS Lambda: a server that does what API Gateway does. It makes an event of each request, in payload format 1.0
 * (a REST API) or 2.0 (an HTTP API), calls the function with it, and makes a response of the result.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type {
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  APIGatewayProxyResult,
  APIGatewayProxyStructuredResultV2,
} from 'aws-lambda'
import { idempotencyOf, idempotent, type LambdaEvent } from '../../dist/http/lambda.js'
import type { HttpRoute, HttpSite, Said } from '../../dist/testing/index.js'

export type Format = '1.0' | '2.0'
/** A function as Lambda calls it. */
export type Invoked = (event: LambdaEvent, context: { getRemainingTimeInMillis(): number }) => unknown

const context = { getRemainingTimeInMillis: () => 60_000 }

export function caller({ headers }: LambdaEvent): string {
  const found = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'authorization')
  return found?.[1] ?? ''
}

/** Starts an API with the routes, matched by method and path. */
export function starter(format: Format) {
  return <Tx extends object>({ safe, routes }: HttpSite<Tx>) => {
    const handlers = routes.map((route) => ({ ...route, handle: mount(safe, route, format) }))
    return listen(format, (method, path) => {
      const found = handlers.find((route) => route.method.toUpperCase() === method && route.path === path)
      return found?.handle
    })
  }
}

function mount<Tx extends object>(safe: HttpSite<Tx>['safe'], route: HttpRoute<Tx>, format: Format): Invoked {
  if (route.kind === 'replies') {
    return idempotent(safe, route.options, (attempt) => route.run({ attempt, body: attempt.body }))
  }
  return idempotent(
    safe,
    route.options,
  )(async (event: LambdaEvent) => {
    const body = event.body ? JSON.parse(event.body) : undefined
    const said = await route.run({ attempt: idempotencyOf<Tx>(event), body })
    return format === '1.0' ? resultOf(said) : resultOfV2(said)
  })
}

/** Serves functions; `find` picks one by method and path. */
export async function listen(format: Format, find: (method: string, path: string) => Invoked | undefined) {
  const server = createServer((req, res) => {
    const { pathname } = new URL(`http://api${req.url}`)
    const invoked = find(req.method ?? '', pathname)
    if (invoked === undefined) res.writeHead(404).end()
    else gateway(format, invoked, req, res).catch(() => res.destroy())
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

async function gateway(format: Format, invoked: Invoked, req: IncomingMessage, res: ServerResponse) {
  const event = format === '1.0' ? await eventOf(req) : await eventOfV2(req)
  let result: unknown
  try {
    // Over the wire both are JSON.
    result = JSON.parse(JSON.stringify((await invoked(event, context)) ?? null))
  } catch {
    respond(res, format === '1.0' ? 502 : 500, {}, '{"message":"Internal Server Error"}')
    return
  }
  if (format === '1.0') respondV1(res, result)
  else respondV2(res, result)
}

/** What is text goes as text; the rest in base64, as it would with `binaryMediaTypes`. */
async function bodyOf(req: IncomingMessage) {
  const bytes = await buffer(req)
  if (bytes.length === 0) return undefined
  const isText = /^(text\/|application\/(json|xml|javascript))/i.test(req.headers['content-type'] ?? 'text/')
  return { body: bytes.toString(isText ? 'utf8' : 'base64'), isBase64Encoded: !isText }
}

async function eventOf(req: IncomingMessage): Promise<APIGatewayProxyEvent> {
  const { pathname, searchParams } = new URL(`http://api${req.url}`)
  const lists: Record<string, string[]> = {}
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] ?? ''
    lists[name] = [...(lists[name] ?? []), req.rawHeaders[at + 1] ?? '']
  }
  const names = [...new Set(searchParams.keys())]
  const sent = await bodyOf(req)
  return {
    httpMethod: req.method ?? '',
    path: pathname,
    resource: '/{proxy+}',
    headers: Object.fromEntries(Object.entries(lists).map(([name, values]) => [name, values.at(-1)])),
    multiValueHeaders: lists,
    queryStringParameters: names.length === 0 ? null : Object.fromEntries(searchParams),
    multiValueQueryStringParameters:
      names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, searchParams.getAll(name)])),
    pathParameters: null,
    stageVariables: null,
    requestContext: { path: `/prod${pathname}`, stage: 'prod' } as APIGatewayProxyEvent['requestContext'],
    body: sent?.body ?? null,
    isBase64Encoded: sent?.isBase64Encoded ?? false,
  }
}

async function eventOfV2(req: IncomingMessage): Promise<APIGatewayProxyEventV2> {
  const { pathname, search, searchParams } = new URL(`http://api${req.url}`)
  const headers: Record<string, string> = {}
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    const name = (req.rawHeaders[at] ?? '').toLowerCase()
    const value = req.rawHeaders[at + 1] ?? ''
    headers[name] = headers[name] === undefined ? value : `${headers[name]},${value}`
  }
  const { cookie, ...others } = headers
  const http = { method: req.method ?? '', path: pathname, protocol: 'HTTP/1.1', sourceIp: '', userAgent: '' }
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: pathname,
    rawQueryString: search.slice(1),
    headers: others,
    ...(cookie !== undefined && { cookies: cookie.split('; ') }),
    ...(search !== '' && { queryStringParameters: Object.fromEntries(searchParams) }),
    requestContext: { http, stage: '$default' } as APIGatewayProxyEventV2['requestContext'],
    isBase64Encoded: false,
    ...(await bodyOf(req)),
  }
}

function respondV1(res: ServerResponse, result: unknown): void {
  const {
    statusCode,
    headers = {},
    multiValueHeaders = {},
    body = '',
    isBase64Encoded,
  } = (result ?? {}) as Partial<APIGatewayProxyResult>
  if (statusCode === undefined || typeof body !== 'string') {
    respond(res, 502, {}, '{"message":"Internal server error"}')
    return
  }
  const all = { 'content-type': 'application/json', ...lowered(headers), ...lowered(multiValueHeaders) }
  respond(res, statusCode, all, Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'))
}

function respondV2(res: ServerResponse, result: unknown): void {
  const isStructured = typeof result === 'object' && result !== null && 'statusCode' in result
  if (!isStructured) {
    const text = typeof result === 'string' ? result : JSON.stringify(result)
    respond(res, 200, { 'content-type': 'application/json' }, text)
    return
  }
  const {
    statusCode = 200,
    headers = {},
    cookies = [],
    body = '',
    isBase64Encoded,
  } = result as APIGatewayProxyStructuredResultV2
  const all: Record<string, unknown> = { 'content-type': 'text/plain;charset=UTF-8', ...lowered(headers) }
  if (cookies.length > 0) all['set-cookie'] = cookies
  respond(res, statusCode, all, Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'))
}

function lowered(headers: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function respond(res: ServerResponse, status: number, headers: object, body: string | Buffer): void {
  res.statusCode = status
  for (const [name, value] of Object.entries(headers))
    res.setHeader(name, Array.isArray(value) ? value.map(String) : String(value))
  if (status !== 204 && status !== 304) res.setHeader('content-length', Buffer.byteLength(body))
  res.end(status === 204 || status === 304 ? undefined : body)
}

function resultOf(said: Said): APIGatewayProxyResult {
  if (said.do === 'throw') throw said.error
  const headers = 'headers' in said ? { ...said.headers } : {}
  const base = { statusCode: said.status, headers }
  switch (said.do) {
    case 'json':
      headers['content-type'] = 'application/json; charset=utf-8'
      return { ...base, body: JSON.stringify(said.value) }
    case 'text':
      return { ...base, body: said.text }
    case 'bytes':
      return { ...base, body: Buffer.from(said.bytes).toString('base64'), isBase64Encoded: true }
    case 'empty':
      return { ...base, body: '' }
    case 'redirect':
      return { ...base, multiValueHeaders: { Location: [said.location] }, body: '' }
    case 'stream':
    case 'writes':
      throw new Error('a result is one piece')
    default:
      return said satisfies never
  }
}

function resultOfV2(said: Said): APIGatewayProxyStructuredResultV2 {
  const { multiValueHeaders, headers, ...rest } = resultOf(said)
  return { ...rest, headers: { ...headers, ...(multiValueHeaders && { location: '/orders/7' }) } }
}
