/**
 * The HTTP suite's harness for Fastify: mounts abstract routes, and answers with Fastify's own reply.
 */
import { Readable } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type HttpAttempt, idempotent, rawBody } from '../../dist/http/fastify.js'
import type { HttpRoute, HttpSite, Said } from '../../dist/testing/index.js'
import { http2Front } from './http2-front.js'

declare module 'fastify' {
  interface FastifyRequest {
    idempotency?: HttpAttempt<unknown>
  }
}

export function caller(request: FastifyRequest): string {
  return request.headers.authorization ?? ''
}

export interface Setup {
  /** Whether JSON is parsed before us, as Fastify does by itself, or nothing is. */
  readonly parser?: 'parser' | 'no parser'
  /** Over HTTP/2, behind a front that speaks HTTP/1. */
  readonly http2?: boolean
  /** Adds to the application before the routes. */
  readonly prepare?: (app: FastifyInstance) => Promise<unknown>
}

/** Starts an application with the routes. */
export function starter({ parser = 'parser', http2 = false, prepare }: Setup = {}) {
  return async <Tx extends object>({ safe, routes }: HttpSite<Tx>) => {
    const app = http2 ? overHttp2() : fastify({ forceCloseConnections: true })
    if (parser === 'no parser') app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    await app.register(rawBody)
    await prepare?.(app)
    for (const route of routes) await mount(app, safe, route)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const front = http2 ? await http2Front(url) : undefined
    return {
      url: front?.url ?? url,
      close: async () => {
        await front?.close()
        await app.close()
      },
    }
  }
}

/** Its types are those of a server over HTTP/1 in all that is used here. */
function overHttp2(): FastifyInstance {
  return fastify({ http2: true }) as unknown as FastifyInstance
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

async function mount<Tx extends object>(
  app: FastifyInstance,
  safe: HttpSite<Tx>['safe'],
  route: HttpRoute<Tx>,
): Promise<void> {
  const method = route.method.toLowerCase() as Method
  if (route.kind === 'replies') {
    app[method](
      route.path,
      idempotent(safe, route.options, (attempt) => route.run({ attempt, body: attempt.body })),
    )
    return
  }
  await app.register(async (scope) => {
    await scope.register(idempotent(safe, route.options))
    scope[method](route.path, async (request, reply) => {
      const attempt = request.idempotency as HttpAttempt<Tx> | undefined
      return answer(reply, await route.run({ attempt, body: request.body }))
    })
  })
}

export function answer(reply: FastifyReply, said: Said): FastifyReply {
  if ('status' in said) reply.code(said.status)
  if ('headers' in said && said.headers !== undefined) reply.headers(said.headers)
  switch (said.do) {
    case 'json':
      return reply.send(said.value)
    case 'text':
      return reply.send(said.text)
    case 'bytes':
      return reply.send(Buffer.from(said.bytes))
    case 'stream':
      return reply.send(Readable.from(said.pieces))
    case 'writes':
      reply.hijack()
      reply.raw.writeHead(said.status, { ...said.headers })
      for (const piece of said.pieces) reply.raw.write(piece)
      reply.raw.end()
      return reply
    case 'empty':
      return reply.send()
    case 'redirect':
      return reply.redirect(said.location, said.status)
    case 'throw':
      throw said.error
    default:
      return said satisfies never
  }
}
