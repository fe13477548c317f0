/**
 * The head of a captured reply as it was when the handler had said it, and how a client will tell that the body behind it is over.
 */
import type { ServerResponse } from 'node:http'
import type { StoredReply } from '../outcome.js'
import { isBodyless } from '../reply-headers.js'
import { wordsOf } from './http2.js'
import { linesOf } from './wire.js'

export interface Head {
  readonly status: number
  readonly message: string
  readonly headers: StoredReply['headers']
  readonly framing: Framing
}

/** By a length (0 where the head is the whole message), by a chunk that says so, or by nothing but the end of the connection. */
export type Framing =
  | { readonly by: 'length'; readonly bytes: number }
  | { readonly by: 'chunks' }
  | { readonly by: 'close' }

/** Takes the head from a response; what the handler does later to a list it has given as a header's value changes nothing. */
export function takeHead(res: ServerResponse): Head {
  for (const [name, value] of Object.entries(res.getHeaders()))
    if (Array.isArray(value)) res.setHeader(name, [...value])
  const headers = linesOf(res.getHeaders()).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, String(one)] as const),
  )
  return { status: res.statusCode, message: wordsOf(res), headers, framing: framingOf(res) }
}

/** As Node frames it (RFC 9112, section 6.3). Clients of HTTP/1.0, which proxies often are, get no chunks. */
function framingOf(res: ServerResponse): Framing {
  if (isBodyless(res.statusCode) || res.req.method === 'HEAD') return { by: 'length', bytes: 0 }
  const coding = res.getHeader('transfer-encoding')
  if (coding !== undefined) return { by: /\bchunked\b/i.test(String(coding)) ? 'chunks' : 'close' }
  const bytes = Number(res.getHeader('content-length') ?? Number.NaN)
  if (!Number.isNaN(bytes)) return { by: 'length', bytes }
  return { by: res.useChunkedEncodingByDefault === false || isUncoded(res) ? 'close' : 'chunks' }
}

/** Whether the handler has taken `Transfer-Encoding` away, which Node notes in a member of its own. */
function isUncoded(res: object): boolean {
  return (res as { _removedTE?: boolean })._removedTE === true
}

/** Whether the body is a stream of events: each is there to be read at once, and none is an outcome. */
export function isEventStream(res: ServerResponse): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(String(res.getHeader('content-type') ?? '').trim())
}
