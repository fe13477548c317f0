/**
 * Headers: reading the raw list of a request, and which headers of a reply a record keeps.
 *
 * What is kept describes the reply itself: how its body is to be read (content-*, x-content-type-options; a page without its
 * content-security-policy would be a weaker one), what it is about (location, etag, last-modified, link), and how long it holds
 * (cache-control, expires, retry-after, vary). Everything else belongs to one exchange
 * or one caller: a cookie, a date, a request id, rate limits, CORS, the connection. A route that answers with a header of its own
 * that callers rely on names it in `replayHeaders`.
 */
import { fail } from '../errors.js'
import type { StoredReply } from '../outcome.js'
import { isBodyless, isHeaderName, isNeverKept, replayMarker } from '../reply-headers.js'

type Header = readonly [name: string, value: string]

/** Headers a browser page must be allowed to send; for `Access-Control-Allow-Headers`. */
export const corsAllowedHeaders: readonly string[] = ['Idempotency-Key', 'Idempotency-Attempt']

/** Headers of replies that a browser page must be allowed to read; for `Access-Control-Expose-Headers`. */
export const corsExposedHeaders: readonly string[] = [replayMarker, 'Retry-After', 'Link']

/** Kept by default; `replayHeaders` adds to it. */
export const keptHeaders: ReadonlySet<string> = new Set([
  'content-type',
  'content-language',
  'content-disposition',
  'content-encoding',
  'content-location',
  'location',
  'etag',
  'last-modified',
  'link',
  'cache-control',
  'expires',
  'retry-after',
  'vary',
  'content-security-policy',
  'x-content-type-options',
])

/** Every line of a header in Node's raw list (name, value, name, value …): a repeated one is seen, not joined. */
export function headerLines(rawHeaders: readonly string[], name: string): string[] {
  const wanted = name.toLowerCase()
  const lines: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === wanted) lines.push(rawHeaders[index + 1] ?? '')
  }
  return lines
}

/** The names a record keeps: the default ones and those of `replayHeaders`. */
export function keptNames(replayHeaders: readonly string[]): ReadonlySet<string> {
  const names = replayHeaders.map((name) => {
    if (!isHeaderName(name)) throw fail('OPTION_INVALID', { detail: 'replayHeaders must be header names' })
    const lower = name.toLowerCase()
    if (isNeverKept(lower)) {
      throw fail('OPTION_INVALID', { detail: `replayHeaders must not name ${lower}: it is never kept` })
    }
    return lower
  })
  return new Set([...keptHeaders, ...names])
}

/** The part of a reply that a record keeps. */
export function keptReply(reply: StoredReply, names: ReadonlySet<string>): StoredReply {
  const headers = reply.headers
    .map(([name, value]): Header => [name.toLowerCase(), value])
    .filter(([name]) => names.has(name))
  return { status: reply.status, headers, body: isBodyless(reply.status) ? new Uint8Array() : reply.body }
}

/** The first value of a header of a reply. */
export function headerOf(reply: StoredReply, name: string): string | undefined {
  return reply.headers.find(([own]) => own.toLowerCase() === name)?.[1]
}
