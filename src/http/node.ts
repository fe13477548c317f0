/**
 * A reply sent through a Node response, so that middleware around it (compression, logging) does its work on a replay too.
 */
import type { ServerResponse } from 'node:http'
import type { StoredReply } from '../outcome.js'
import { isBodyless } from '../reply-headers.js'

/** Sends a reply. Headers that earlier middleware has set stay, but for those of the same name. */
export function sendReply(res: ServerResponse, reply: StoredReply): void {
  if (res.headersSent || res.destroyed) return
  res.statusCode = reply.status
  const own = new Set(reply.headers.map(([name]) => name.toLowerCase()))
  // A cookie of earlier middleware is not replaced by the handler's.
  own.delete('set-cookie')
  for (const name of own) res.removeHeader(name)
  for (const [name, value] of reply.headers) res.appendHeader(name, value)
  if (isBodyless(reply.status)) {
    if (reply.status === 205) res.setHeader('content-length', '0')
    res.end()
    return
  }
  res.setHeader('content-length', String(reply.body.length))
  res.end(reply.body)
}
