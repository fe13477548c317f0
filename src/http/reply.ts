/**
 * What a handler answers: a status, headers and bytes. The body is encoded here, inside the work, so a body that cannot be encoded
 * throws before anything commits, and nothing the handler changes afterwards changes the reply.
 */
import { fail } from '../errors.js'
import type { StoredReply } from '../outcome.js'
import { isBodyless, isFraming, isHeaderName, isHeaderValue } from '../reply-headers.js'
import { failOfOurs } from './user-code.js'

// A symbol of the registry, so that a reply made by another copy of the package is one too.
const brand = Symbol.for('retrysafe.reply')

/** A reply made by {@link reply}; frozen. */
export interface Reply extends StoredReply {
  readonly [brand]: true
}

/** Headers of a reply: a name, and its value or, for several lines, values. */
export type ReplyHeaders = Readonly<Record<string, string | number | readonly string[]>>

/**
 * Makes the reply of a handler.
 *
 * | body | sent as | content-type, unless a header names one |
 * |---|---|---|
 * | `undefined` | nothing | none |
 * | `Uint8Array`, any other view, `ArrayBuffer` | its bytes | `application/octet-stream` |
 * | string | UTF-8 | `text/plain; charset=utf-8` |
 * | anything else | JSON | `application/json; charset=utf-8` |
 *
 * A record keeps the body and the headers that describe it; `Set-Cookie` and the like reach the first caller only.
 *
 * @throws `OPTION_INVALID` for a status outside 200 to 599, a header with a line break, a header that frames the message
 * (`Content-Length`), a body where the status has none, or a body that has no JSON
 *
 * @example
 * ```ts
 * return reply(201, { orderId: 'o-1' }, { location: '/orders/o-1' })
 * ```
 */
export function reply(status: number, body?: unknown, headers: ReplyHeaders = {}): Reply {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw fail('OPTION_INVALID', { detail: 'the status of a reply must be a whole number from 200 to 599' })
  }
  if (body !== undefined && isBodyless(status)) {
    throw fail('OPTION_INVALID', { detail: `a reply with status ${status} has no body` })
  }
  const encoded = encode(body)
  const lines = linesOf(headers)
  const { type } = encoded
  if (type !== undefined && !lines.some(([name]) => name === 'content-type')) {
    lines.unshift(Object.freeze(['content-type', type] as const))
  }
  const made: Reply = { status, headers: Object.freeze(lines), body: encoded.bytes, [brand]: true }
  return Object.freeze(made)
}

/** Whether a value was made by {@link reply}, by any copy of the package. */
export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === true
}

/** Refuses what is not a reply, inside the work, so that nothing is stored. */
export function checkReply(value: unknown, who: string): Reply {
  if (isReply(value)) return value
  throw failOfOurs('OPTION_INVALID', {
    detail: `${who} must return reply(status, body), not ${kindOf(value)}`,
  })
}

function encode(body: unknown): { readonly bytes: Uint8Array; readonly type?: string } {
  if (body === undefined) return { bytes: new Uint8Array() }
  if (typeof body === 'string') return { bytes: Buffer.from(body), type: 'text/plain; charset=utf-8' }
  if (body instanceof ArrayBuffer) {
    return { bytes: new Uint8Array(body.slice(0)), type: 'application/octet-stream' }
  }
  if (ArrayBuffer.isView(body)) {
    // A copy: the handler may use its buffer again before the reply is sent.
    const bytes = Uint8Array.from(new Uint8Array(body.buffer, body.byteOffset, body.byteLength))
    return { bytes, type: 'application/octet-stream' }
  }
  return { bytes: Buffer.from(json(body)), type: 'application/json; charset=utf-8' }
}

function json(body: unknown): string {
  // JSON.stringify would quietly make {} of them.
  if (isStreamOrBlob(body)) {
    throw fail('OPTION_INVALID', { detail: 'a stream or a Blob must be read before it becomes a reply' })
  }
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch (cause) {
    throw fail('OPTION_INVALID', { detail: 'the body of a reply has no JSON', cause })
  }
  if (text === undefined)
    throw fail('OPTION_INVALID', { detail: `the body of a reply is ${kindOf(body)}, which has no JSON` })
  return text
}

function isStreamOrBlob(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  const { pipe, getReader, arrayBuffer } = body as Record<string, unknown>
  return [pipe, getReader, arrayBuffer].some((method) => typeof method === 'function')
}

function linesOf(headers: ReplyHeaders): (readonly [string, string])[] {
  const lines: (readonly [string, string])[] = []
  for (const [name, given] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (!isHeaderName(name)) {
      throw fail('OPTION_INVALID', { detail: `${JSON.stringify(name)} is not a header name` })
    }
    if (isFraming(lower)) throw fail('OPTION_INVALID', { detail: `${lower} is set by the server` })
    for (const value of Array.isArray(given) ? given : [given]) {
      if (!isHeaderValue(String(value))) {
        throw fail('OPTION_INVALID', { detail: `the value of ${lower} holds a character no header may hold` })
      }
      lines.push(Object.freeze([lower, String(value)] as const))
    }
  }
  return lines
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object'
    ? `an object (${value.constructor?.name ?? 'without prototype'})`
    : typeof value
}
