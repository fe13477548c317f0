/**
 * The small print of `http.ServerResponse`, as Node has it: what counts as a chunk, a status, a list of headers, and which error
 * belongs to which mistake.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { setWords } from './http2.js'

export type Callback = (error?: Error | null) => void

/** A chunk as bytes of its own: who wrote it may use its buffer again. */
export function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  if (chunk instanceof Uint8Array) return Buffer.from(chunk)
  const code = chunk === null ? 'ERR_STREAM_NULL_VALUES' : 'ERR_INVALID_ARG_TYPE'
  throw Object.assign(new TypeError('The chunk must be a string, a Buffer or a Uint8Array'), { code })
}

function statusOf(status: unknown): number {
  const code = Number(status) | 0
  if (code >= 100 && code <= 999) return code
  throw Object.assign(new RangeError(`Invalid status code: ${String(status)}`), {
    code: 'ERR_HTTP_INVALID_STATUS_CODE',
  })
}

/** Headers in any form that `writeHead` takes (an object, a flat list, a list of pairs) as pairs. */
export function linesOf(headers: unknown): (readonly [name: string, value: unknown])[] {
  if (typeof headers !== 'object' || headers === null) return []
  if (!Array.isArray(headers)) return Object.entries(headers).filter(([name]) => name !== '')
  if (headers.every(Array.isArray)) return headers.map(([name, value]) => [String(name), value])
  if (headers.length % 2 !== 0) {
    throw Object.assign(new TypeError('The headers must be names and values in turn'), {
      code: 'ERR_INVALID_ARG_VALUE',
    })
  }
  const lines: [string, unknown][] = []
  for (let index = 0; index < headers.length; index += 2)
    lines.push([String(headers[index]), headers[index + 1]])
  return lines
}

/** What `writeHead` is given, put on the response. */
export function putHead(res: ServerResponse, status: unknown, rest: readonly unknown[]): void {
  const code = statusOf(status)
  const [reason, headers] = typeof rest[0] === 'string' ? [rest[0], rest[1]] : [undefined, rest[0] ?? rest[1]]
  res.statusCode = code
  if (reason !== undefined) setWords(res, reason)
  linesOf(headers).forEach(([name, value], index, lines) => {
    const first = lines.findIndex(([other]) => other.toLowerCase() === name.toLowerCase()) === index
    if (first) res.setHeader(name, value as string)
    else res.appendHeader(name, value as string)
  })
}

export function copyOfHeaders(res: ServerResponse): OutgoingHttpHeaders {
  const copy = { ...res.getHeaders() }
  for (const [name, value] of Object.entries(copy)) if (Array.isArray(value)) copy[name] = [...value]
  return copy
}

export function headSent(): Error {
  return Object.assign(new Error('Cannot write headers after they are sent to the client'), {
    code: 'ERR_HTTP_HEADERS_SENT',
  })
}

/** What Node tells a writer whose response is gone: it stops. */
export function heldTooMuch(): Error {
  return Object.assign(new Error('The reply is too large to be held back'), { code: 'ERR_STREAM_DESTROYED' })
}

/**
 * A write after `end()`: reported as Node reports it, to the callback and as an event. Not where nobody listens for that: without us the
 * response is over a moment after its end and says nothing; with us it may wait for a while, and the event would end the process.
 */
export function lateWrite(res: ServerResponse, done: Callback | undefined): false {
  const error = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })
  process.nextTick(() => {
    done?.(error)
    if (!res.destroyed && res.listenerCount('error') > 0) res.emit('error', error)
  })
  return false
}

/** Tells a writer that what it wrote was taken. */
export function later(done: Callback | undefined): true {
  if (done !== undefined) process.nextTick(done, null)
  return true
}

/** Marks a response as closed, or takes the mark away: the public member, and the one that `stream.finished` reads. */
export function setClosed(res: ServerResponse, closed: boolean): void {
  Object.assign(res, { destroyed: closed, _closed: closed })
}

/** The members as those before us left them. */
export function membersOf({ writeHead, flushHeaders, write, end, destroy, emit }: ServerResponse) {
  return { writeHead, flushHeaders, write, end, destroy, emit }
}
