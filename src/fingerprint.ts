/**
 * The fingerprint of an intent: what must be equal between a call and its retry (rule 15), as 17 or 33 bytes.
 *
 * It holds two digests. The first is of the request exactly as it came: nearly every retry sends the same bytes and is
 * recognised by it, without its JSON being read. The second is of what the request means, and is looked at only when the first
 * differs. Both start with a word of their own, so that no request can pass one off as the other.
 *
 * | part | exactly | by meaning |
 * |---|---|---|
 * | method | as sent | as sent: methods are case-sensitive (RFC 9110, section 9.1) |
 * | path | as sent | as sent: `%7e` and `~` are two paths, for the server may route them apart |
 * | query | as sent | pairs in the order of their names; pairs of one name stay in order (`a=1&a=2` is not `a=2&a=1`) |
 * | fragment | as sent | left out |
 * | JSON body | bytes | value |
 * | `multipart/form-data` body | bytes | what stands between the boundaries |
 * | other body | bytes | bytes |
 *
 * The content type decides how a body is read, and only that reading counts (JSON, form parts, bytes), not its words: proxies
 * and client libraries rewrite `application/json` to `application/json; charset=utf-8`, and an honest retry must not fail
 * for it. The same bytes as `text/plain` and as `application/json` are two intents; as `text/plain` and `text/csv`, one.
 *
 * Where there is one reading only (a value, no body), one digest stands for both: 16 bytes less in every record.
 *
 * 128 of 256 bits of SHA-256 are kept of each: who looks for two requests with one fingerprint could only replay his own.
 */
import { hash } from 'node:crypto'
import { digestOfJson } from './canonical-bytes.js'
import { digestOfValue } from './canonical-value.js'
import { fail } from './errors.js'
import { digestOfParts, readMediaType } from './media-type.js'

/** What is compared between a call and its retry. */
export interface Fingerprint {
  /**
   * Whether a stored fingerprint means the same intent.
   *
   * @throws `RECORD_CORRUPT` for a stored fingerprint of another version or length (rule 13); `BODY_INVALID` as {@link bytes}
   */
  matches(stored: Uint8Array): boolean
  /**
   * What to store: version byte, 16 bytes of the exact digest, 16 bytes of the digest by meaning. Computed once. To be called
   * before the work runs: up to then the request's bytes are still referred to, and the work may change them.
   *
   * @throws `BODY_INVALID` for a body that says it is JSON and is not, or is nested too deep
   */
  bytes(): Uint8Array
}

/** A body as the adapter has it; `undefined` and no bytes are the empty body, whatever its type. */
type FingerprintBody = { readonly bytes: Uint8Array } | { readonly parsed: unknown } | undefined

/** What of a request counts. */
export interface FingerprintRequest {
  readonly method: string
  /** Path and query as the client sent them, before any router took its prefix off. */
  readonly target: string
  readonly contentType?: string
  readonly body: FingerprintBody
}

const version = 1
const versionByte = Buffer.of(version)
const digestLength = 16
/** With the digest of the exact bytes in front of the one by meaning; without, where nothing is exact. */
const longLength = 1 + 2 * digestLength
const shortLength = 1 + digestLength

/**
 * The fingerprint of an HTTP request. Bytes are read by value when it is first needed, a parsed body at once.
 *
 * @throws `BODY_INVALID` for a parsed body that has no JSON
 */
export function fingerprintOfRequest(request: FingerprintRequest): Fingerprint {
  const { method, target } = request
  const exactHead = `${counted(method)}${counted(target)}`
  const meant = (body: string) =>
    digest(`meaning:request:${counted(method)}${meaningOfTarget(target)}${body}`)
  const content = contentOf(request.body)
  // Without bytes nothing is exact: the digest by meaning stands for both.
  if (!(content instanceof Uint8Array)) return eager(meant(formOfValue(content)))
  const exactBody = hash('sha256', content)
  const reading = readingOf(request.contentType, content)
  const exact = digest(`exact:request:${exactHead}${reading.tag}${exactBody}`)
  return fingerprint(exact, () => meant(`${reading.tag}${reading.digest?.() ?? exactBody}`))
}

/**
 * The fingerprint of an API call's `input`; `undefined` has the empty fingerprint, which only another empty one matches.
 *
 * @throws `BODY_INVALID` for an input that has no JSON: a function, a Map, a cycle, more than 512 levels
 */
export function fingerprintOfValue(input: unknown): Fingerprint {
  return eager(digest(`meaning:value:${formOfValue(input)}`))
}

/** The fingerprint of bytes that the user has made himself (`fingerprint` of an intent); equal bytes are equal intents. */
export function fingerprintOfBytes(bytes: Uint8Array): Fingerprint {
  return eager(digest(`meaning:bytes:${hash('sha256', bytes)}`))
}

/** Bytes, wherever the adapter found them (a raw parser leaves them as the parsed body), or a value; empty is `undefined`. */
function contentOf(body: FingerprintBody): unknown {
  const content = body === undefined || 'bytes' in body ? body?.bytes : body.parsed
  return content instanceof Uint8Array && content.length === 0 ? undefined : content
}

function formOfValue(value: unknown): string {
  const form = digestOfValue(value)
  return form === undefined ? 'empty' : `json:${form}`
}

interface Reading {
  readonly tag: string
  /** The digest by meaning; absent where the bytes themselves are meant. */
  readonly digest?: () => string
}

function readingOf(contentType: string | undefined, bytes: Uint8Array): Reading {
  const { kind, boundary } = readMediaType(contentType)
  if (kind === 'json') return { tag: 'json:', digest: () => digestOfJson(bytes) }
  if (kind === 'form' && boundary !== undefined)
    return { tag: 'form:', digest: () => digestOfParts(bytes, boundary) }
  return { tag: 'bytes:' }
}

/** A text with its length in front, so that nothing in it can be taken for what follows. */
function counted(text: string): string {
  return `${text.length}:${text}`
}

function meaningOfTarget(target: string): string {
  const [sent = ''] = target.split('#', 1)
  const mark = sent.indexOf('?')
  if (mark === -1) return `${counted(sent)}0:`
  const pairs = sent
    .slice(mark + 1)
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => ({ pair, name: pair.split('=', 1)[0] ?? '' }))
  // Stable, and by code units: no locale decides (rule 15).
  pairs.sort((left, right) => compare(left.name, right.name))
  return `${counted(sent.slice(0, mark))}${counted(pairs.map(({ pair }) => pair).join('&'))}`
}

function compare(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

function digest(text: string): Buffer {
  // By way of a text: a digest as a Buffer costs three times as much.
  return Buffer.from(hash('sha256', text, 'binary').slice(0, digestLength), 'binary')
}

function eager(meaning: Buffer): Fingerprint {
  return fingerprint(meaning, () => meaning)
}

function pack(exact: Buffer, meaning: Buffer): Buffer {
  return Buffer.concat(exact === meaning ? [versionByte, meaning] : [versionByte, exact, meaning])
}

function fingerprint(exact: Buffer, meaning: () => Buffer): Fingerprint {
  // Replaced by its answer, so that the body is neither kept nor read again once the work may change it.
  let known: Buffer | (() => Buffer) = meaning

  function bytes(): Buffer {
    if (typeof known === 'function') known = pack(exact, known())
    return known
  }

  function matches(stored: Uint8Array): boolean {
    if (stored[0] !== version || (stored.length !== longLength && stored.length !== shortLength)) {
      throw fail('RECORD_CORRUPT', {
        detail: 'its fingerprint is of a version or a length unknown to this release',
      })
    }
    if (exact.equals(stored.subarray(1, shortLength))) return true
    return bytes().subarray(-digestLength).equals(stored.subarray(-digestLength))
  }

  return { matches, bytes }
}
