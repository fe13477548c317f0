/**
 * The HTTP suite's harness for Koa: mounts abstract routes, and answers with Koa's own context.
 */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { bodyParser } from '@koa/bodyparser'
import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { idempotent } from '../../dist/http/koa.js'
import type { HttpRoute, HttpSite, Said } from '../../dist/testing/index.js'
import { http2Front } from './http2-front.js'

export function caller(ctx: Context): string {
  return ctx.get('authorization')
}

export interface Setup {
  readonly parser?: 'parser' | 'no parser'
  /** Over HTTP/2, behind a front that speaks HTTP/1. */
  readonly http2?: boolean
  /** Middleware before everything else. */
  readonly before?: readonly Middleware[]
}

/** Starts an application with the routes. */
export function starter({ parser = 'parser', http2 = false, before = [] }: Setup = {}) {
  return async <Tx extends object>({ safe, routes }: HttpSite<Tx>) => {
    const app = new Koa()
    app.silent = true
    for (const middleware of before) app.use(middleware)
    if (parser === 'parser') app.use(bodyParser())
    const router = new Router()
    for (const route of routes) mount(router, safe, route)
    app.use(router.routes())
    return listen(app.callback() as RequestListener, http2)
  }
}

export async function listen(listener: RequestListener, http2 = false) {
  const server = http2 ? createHttp2Server(listener as never) : createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const front = http2 ? await http2Front(url) : undefined
  return {
    url: front?.url ?? url,
    close: async () => {
      await front?.close()
      if ('closeAllConnections' in server) server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function mount<Tx extends object>(router: Router, safe: HttpSite<Tx>['safe'], route: HttpRoute<Tx>): void {
  const methods = [route.method.toUpperCase()]
  if (route.kind === 'replies') {
    const handler = idempotent(safe, route.options, (attempt) => route.run({ attempt, body: attempt.body }))
    router.register(route.path, methods, handler as Middleware)
    return
  }
  const handler: Middleware = async (ctx) => {
    answer(ctx, await route.run({ attempt: ctx.state.idempotency, body: ctx.request.body }))
  }
  router.register(route.path, methods, [idempotent(safe, route.options) as Middleware, handler])
}

export function answer(ctx: Context, said: Said): void {
  if ('status' in said) ctx.status = said.status
  if ('headers' in said && said.headers !== undefined) ctx.set({ ...said.headers })
  switch (said.do) {
    case 'json':
      ctx.body = said.value
      return
    case 'text':
      ctx.body = said.text
      return
    case 'bytes':
      ctx.body = Buffer.from(said.bytes)
      return
    case 'stream':
      ctx.body = Readable.from(said.pieces)
      return
    case 'writes':
      ctx.respond = false
      for (const piece of said.pieces) ctx.res.write(piece)
      ctx.res.end()
      return
    case 'empty':
      ctx.body = null
      ctx.status = said.status
      return
    case 'redirect':
      ctx.redirect(said.location)
      ctx.status = said.status
      return
    case 'throw':
      throw said.error
    default:
      said satisfies never
  }
}
