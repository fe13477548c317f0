/**
 * The HTTP suite's harness for Express: mounts abstract routes, and answers with Express's own response object.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { Express, Request, Response } from 'express'
import { idempotent, rawBody } from 'retrysafe/express'
import type { HttpRoute, HttpSite, Said } from 'retrysafe/testing'

/** The module under test: Express 4 or 5. */
type ExpressModule = typeof import('express')

export function caller(request: Request): string {
  return request.headers.authorization ?? ''
}

/** Starts an application with the routes; with `parser`, JSON is parsed before them and its bytes are kept. */
export function starter(express: ExpressModule, parser: 'parser' | 'no parser') {
  return async <Tx extends object>({ safe, routes }: HttpSite<Tx>) => {
    const app = express()
    if (parser === 'parser') app.use(express.json({ verify: rawBody }))
    for (const route of routes) mount(app, safe, route)
    const server = createServer(app)
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
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

function mount<Tx extends object>(app: Express, safe: HttpSite<Tx>['safe'], route: HttpRoute<Tx>): void {
  const method = route.method.toLowerCase() as Method
  if (route.kind === 'replies') {
    app[method](
      route.path,
      idempotent(safe, route.options, (attempt) => route.run({ attempt, body: attempt.body })),
    )
    return
  }
  app[method](route.path, idempotent(safe, route.options), async (request, response) => {
    const { idempotency: attempt, body } = request
    answer(response, await route.run({ attempt, body }))
  })
}

export function answer(response: Response, said: Said): void {
  if ('status' in said) response.status(said.status)
  if ('headers' in said && said.headers !== undefined) response.set(said.headers)
  switch (said.do) {
    case 'json':
      response.json(said.value)
      return
    case 'text':
      response.send(said.text)
      return
    case 'bytes':
      response.send(Buffer.from(said.bytes))
      return
    case 'stream':
      Readable.from(said.pieces).pipe(response)
      return
    case 'writes':
      for (const piece of said.pieces) response.write(piece)
      response.end()
      return
    case 'empty':
      response.end()
      return
    case 'redirect':
      response.redirect(said.status, said.location)
      return
    case 'throw':
      throw said.error
    default:
      said satisfies never
  }
}
