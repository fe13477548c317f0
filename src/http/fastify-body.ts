/**
 * The body of a Fastify request. The framework parses it before any handler, from a stream that it does not keep, and a schema may change
 * what came of it; so the bytes are remembered on their way into the parser.
 */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { hasBody, plainBody } from './body.js'
import type { Content } from './content.js'
import { readExpressBody } from './express-body.js'
import type { FastifyHooks, FastifyRequest } from './fastify-types.js'
import { seenBody, watchBody } from './seen-body.js'

/** Fastify's own limit, in bytes. */
const defaultBodyLimit = 1024 * 1024

interface Source {
  readonly payload: Readable
  /** The content coding of what it carries. */
  readonly coding: string
}

const sources = new WeakMap<FastifyRequest, Source>()

/** Has the bytes of bodies remembered where it is registered, up to the route's `bodyLimit`. */
export function addBodyWatch(app: FastifyHooks): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (hasBody(request.raw as IncomingMessage) && !sources.has(request)) {
      watchBody(payload, request.routeOptions.bodyLimit ?? defaultBodyLimit)
      // Whoever has put another stream in its place has decoded it.
      const coding = payload === request.raw ? request.headers['content-encoding'] : undefined
      sources.set(request, { payload, coding: coding ?? '' })
    }
    done()
  })
}

/** Reads the body without taking it from those that come later. */
export async function readFastifyBody(
  request: FastifyRequest,
  limitBytes: number,
): Promise<Content | undefined> {
  const { raw, body } = request
  const source = sources.get(request)
  const sent = source && seenBody(source.payload)
  const bytes = sent && (await plainBody(sent, source.coding, limitBytes))
  const { rawBody = bytes } = request as { rawBody?: unknown }
  return readExpressBody(raw as IncomingMessage, limitBytes, {
    body,
    rawBody: typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody,
  })
}
