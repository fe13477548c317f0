/**
 * Which headers may stand in a reply and in a record, whoever made the reply: a handler, or an operator who says what it was.
 */

/** Says that a reply is the stored outcome of an earlier attempt. It is set when a reply is given again and never stored. */
export const replayMarker = 'Idempotent-Replayed'

/** RFC 9110, section 7.6.1, and what frames a message: they belong to a connection, not to a reply. */
const framingHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Never kept, also when named: a stranger's cookie or an old date would be worse than none (rule 9). */
const neverKept: ReadonlySet<string> = new Set([
  ...framingHeaders,
  'date',
  'set-cookie',
  replayMarker.toLowerCase(),
])

// RFC 9110, section 5.6.2 (token), and what Node lets into a header's value.
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

export function isHeaderName(name: unknown): name is string {
  return typeof name === 'string' && token.test(name)
}

export function isHeaderValue(value: string): boolean {
  return fieldValue.test(value)
}

/** Whether a header is set by whoever sends the message, so that a handler must not. */
export function isFraming(lowerName: string): boolean {
  return framingHeaders.has(lowerName)
}

/** Whether a header has no place in a record. */
export function isNeverKept(lowerName: string): boolean {
  return neverKept.has(lowerName)
}

/** Statuses whose reply has no body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5). */
export function isBodyless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}
