/**
 * Replies of ours through a Fastify reply, which keeps its headers to itself until it sends.
 */
import type { StoredReply } from '../outcome.js'
import type { FastifyReply, FastifyRoute } from './fastify-types.js'

/** Sends a reply through the hooks of the application. */
export function sendThrough(reply: FastifyReply, { status, headers, body }: StoredReply): void {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers)
    lines.set(name.toLowerCase(), [...(lines.get(name.toLowerCase()) ?? []), value])
  reply.code(status)
  for (const [name, values] of lines) reply.header(name, values.length > 1 ? values : values[0])
  // An empty buffer would be given a type.
  reply.send(body.length === 0 ? undefined : Buffer.from(body))
}

/**
 * Shows the headers of the hooks before us to the response, so that an answer of ours has them (CORS). What is returned sends an error
 * with those headers alone, to the error handler.
 */
export function showHeaders(reply: FastifyReply): (error: unknown) => void {
  const before = Object.entries(reply.getHeaders()).map(([name, value]) => [name, copyOf(value)] as const)
  for (const [name, value] of before) reply.raw.setHeader(name, copyOf(value) as string)
  return (error) => {
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    for (const [name, value] of before) reply.header(name, value)
    // Of a reply that a handler has taken over, its framework sends nothing more.
    if (reply.sent) reply.raw.destroy()
    else reply.send(error)
  }
}

function copyOf(value: unknown): unknown {
  return Array.isArray(value) ? [...value] : value
}

type RouteHandler = FastifyRoute['handler']

/**
 * A handler that answers a client that has left as well: once one is gone, Fastify sends nothing for a promise of nothing, and nobody would
 * ever know that the work is done.
 */
export function answering(handler: RouteHandler): RouteHandler {
  return function answered(request, reply) {
    const result = handler.call(this, request, reply)
    if (!(result instanceof Promise)) return result
    return result.then((value: unknown) => {
      const { raw, idempotency } = request
      const isGone = raw.socket.destroyed || raw.aborted
      if (value === undefined && isGone && idempotency !== undefined && !reply.sent && !reply.raw.headersSent)
        reply.send()
      return value
    })
  }
}
