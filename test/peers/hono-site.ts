/**
 * The HTTP suite's harness for Hono: mounts abstract routes, and answers with Hono's own helpers, on `@hono/node-server`.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { stream, streamText } from 'hono/streaming'
import { validator } from 'hono/validator'
import { type HonoVariables, idempotent } from '../../dist/http/hono.js'
import type { HttpRoute, HttpSite, Said } from '../../dist/testing/index.js'

type App = Hono<{ Variables: HonoVariables }>

export function caller(c: Context): string {
  return c.req.header('authorization') ?? ''
}

/** Starts an application with the routes; with `parser`, JSON is read and parsed before them. */
export function starter(parser: 'parser' | 'no parser') {
  return <Tx extends object>({ safe, routes }: HttpSite<Tx>) => {
    const app: App = new Hono()
    app.onError((error, c) =>
      c.json({ error: error.message }, 'status' in error ? (error.status as 400) : 500),
    )
    if (parser === 'parser') {
      const json = validator('json', (value) => value)
      app.use(json)
    }
    for (const route of routes) mount(app, safe, route)
    return listen(app)
  }
}

/** Serves an application on a port of its own. */
export async function listen(
  app: Pick<App, 'fetch'>,
  options: Omit<Parameters<typeof createAdaptorServer>[0], 'fetch'> = {},
) {
  const server = createAdaptorServer({ fetch: app.fetch, ...options } as Parameters<
    typeof createAdaptorServer
  >[0])
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function mount<Tx extends object>(app: App, safe: HttpSite<Tx>['safe'], route: HttpRoute<Tx>): void {
  const { method, path, options } = route
  if (route.kind === 'replies') {
    const handler = idempotent(safe, options, (attempt) => route.run({ attempt, body: attempt.body }))
    app.on(method, path, handler)
    return
  }
  app.on(method, path, idempotent(safe, options), async (c) => {
    const body = await c.req.json().catch(() => undefined)
    return answer(c, await route.run({ attempt: c.get('idempotency'), body }))
  })
}

function answer(c: Context, said: Said): Response | Promise<Response> {
  if (said.do === 'throw') throw said.error
  c.status(said.status as 200)
  for (const [name, value] of Object.entries('headers' in said ? (said.headers ?? {}) : {}))
    c.header(name, value)
  switch (said.do) {
    case 'json':
      return c.json(said.value)
    case 'text':
      return said.headers === undefined ? c.text(said.text) : c.body(said.text)
    case 'bytes':
      return c.body(Uint8Array.from(said.bytes))
    case 'stream':
      return stream(c, async (out) => {
        for (const piece of said.pieces) await out.write(piece)
      })
    case 'writes':
      return streamText(c, async (out) => {
        for (const piece of said.pieces) await out.write(piece)
      })
    case 'empty':
      return c.body(null)
    case 'redirect':
      return c.redirect(said.location, said.status as 303)
    default:
      return said satisfies never
  }
}
