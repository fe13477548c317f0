/**
 * The names of an intent: key, scope and operation, and how they are checked (rule 14), drawn (rule 32) and shown in logs.
 *
 * A key that reaches a store has passed one of the two checks here, so every store may assume well-formed Unicode without
 * control characters, 1 to 255 code points. Nothing is normalised or trimmed away: two keys are one key only if their code
 * units are equal, and what a reader cannot tell apart (zero-width characters) is refused instead of folded.
 */
import { hash } from 'node:crypto'
import { type Clock, type Random, systemClock, systemRandom } from './clock.js'
import type { ErrorCode } from './errors.js'
import { fail } from './errors.js'
import { recordName } from './store.js'

/** Code points of a key or of a scope: what Stripe takes, and what a MySQL utf8mb4 index holds twice. */
export const longestName = 255
/** An operation is a name in the source, and joins the scope in one column. */
const longestOperation = 64
/** A quoted key of 255 escaped characters has 512; above this a header is refused unread, however long it is. */
const longestHeader = 1024

// Control characters (C0, DEL, C1: `Cc`) and lone surrogates (`Cs`) do not survive every store, log and header. The rest is
// invisible or turns the reading order: two keys that look the same to an operator would be two intents.
const refusedCharacters = /[\p{Cc}\p{Cs}\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u
const visibleAscii = /^[\x21-\x7e]+$/
// RFC 9651, section 4.2.5, without the space: see keyFromHeader.
const quotedKey = /^"((?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

/**
 * The key in an HTTP request, from the raw values of all its key header lines; `undefined` when there is none.
 *
 * A key is 1 to 255 visible ASCII characters, bare or as a structured-field string, which is unquoted: `k1` and `"k1"` are
 * the same key. Refused are: a second line; a bare comma, because Node joins repeated lines with `, `; a space, inside
 * quotes too, or else the lines `"a` and `b"` would join into one good key; a quote inside a bare key; any escape but `\"`
 * and `\\`; and parameters (`"k1";v=2`), because the draft defines none and ignoring one would make two values one key.
 *
 * Source: draft-ietf-httpapi-idempotency-key-header-07, section 2.1; RFC 9651, section 3.3.3.
 *
 * @throws `KEY_INVALID`
 */
export function keyFromHeader(lines: readonly string[]): string | undefined {
  const [line] = lines
  if (line === undefined) return undefined
  if (lines.length > 1) throw fail('KEY_INVALID', { detail: 'the header was sent more than once' })
  if (line.length > longestHeader) throw fail('KEY_INVALID', { detail: 'the header is too long' })
  const value = line.replace(/^[ \t]+|[ \t]+$/g, '')
  if (value === '') throw fail('KEY_INVALID', { detail: 'the header is blank' })
  const key = value.startsWith('"') ? unquoted(value) : bare(value)
  if (key.length > longestName)
    throw fail('KEY_INVALID', { detail: `the key is longer than ${longestName} characters` })
  return key
}

function unquoted(value: string): string {
  const content = quotedKey.exec(value)?.[1]
  if (content === undefined) throw fail('KEY_INVALID', { detail: 'the quoted string is malformed' })
  if (content === '') throw fail('KEY_INVALID', { detail: 'the quoted string is empty' })
  return content.replace(/\\(.)/g, '$1')
}

function bare(value: string): string {
  if (value.includes(','))
    throw fail('KEY_INVALID', { detail: 'a bare comma, or the header was sent more than once' })
  if (value.includes('"')) throw fail('KEY_INVALID', { detail: 'a quote without its pair' })
  if (!visibleAscii.test(value))
    throw fail('KEY_INVALID', { detail: 'a character that is not visible ASCII' })
  return value
}

/**
 * Checks a key that comes through the API: a string of 1 to 255 code points of well-formed Unicode, without control
 * characters and without characters that cannot be seen (zero-width, direction marks, line separators, U+FEFF).
 *
 * @throws `KEY_INVALID`
 */
export function checkKey(key: unknown): string {
  return checkName(key, longestName, 'KEY_INVALID', 'the key')
}

/**
 * Checks a scope by the same rule as a key. An absent or empty scope is an error, so that callers who are not known are never
 * pooled by accident; name them `anonymous` if they are to share their keys.
 *
 * @throws `SCOPE_INVALID`
 */
export function checkScope(scope: unknown): string {
  return checkName(scope, longestName, 'SCOPE_INVALID', 'the scope')
}

/**
 * The scope as a record has it: an operation's name joins it in front of U+001F, which neither side can hold, so that no two
 * pairs make one scope. At most 320 code points.
 *
 * @throws `SCOPE_INVALID`; `OPTION_INVALID` for an operation that is not 1 to 64 code points of the same characters
 */
export function recordScope(scope: string, operation: string | undefined): string {
  checkScope(scope)
  if (operation === undefined) return scope
  return `${checkName(operation, longestOperation, 'OPTION_INVALID', 'operation')}\u001f${scope}`
}

function checkName(name: unknown, longest: number, code: ErrorCode, what: string): string {
  if (typeof name !== 'string') throw fail(code, { detail: `${what} is not a string` })
  if (name === '') throw fail(code, { detail: `${what} is empty` })
  // A code point takes one code unit or two: most are short enough, or too long, before they are looked at.
  if (name.length > longest && (name.length > 2 * longest || codePoints(name) > longest)) {
    throw fail(code, { detail: `${what} is longer than ${longest} characters` })
  }
  if (refusedCharacters.test(name)) {
    throw fail(code, {
      detail: `${what} holds a control character, a lone surrogate or a character that cannot be seen`,
    })
  }
  return name
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** The last key drawn from a clock. One state per clock, so that a simulation with its own clock repeats from its seed. */
const lastDrawn = new WeakMap<Clock, { ms: number; count: number }>()

/**
 * Draws a key: a UUIDv7, greater than every key drawn before it from the same clock in this process, also within one
 * millisecond and after the clock was set back. Time order keeps the index of a large table small (rule 32).
 *
 * The 12 bits after the time count within the millisecond, from a random start below 2,048 so that 2,048 keys fit at least;
 * when they run out, the next millisecond is used ahead of the clock. 62 bits are random.
 *
 * Defaults: the machine's clock, and its source of chance. Costs 10 random bytes.
 *
 * Source: RFC 9562, section 5.7 and section 6.2, method 1.
 *
 * @example
 * ```ts
 * const once = drawKey()
 * await fetch(url, { method: 'POST', headers: { 'idempotency-key': once }, body })
 * ```
 */
export function drawKey(clock: Clock = systemClock, random: Random = systemRandom): string {
  const bytes = random.bytes(10)
  const drawn = Buffer.from(bytes.buffer, bytes.byteOffset, 10)
  const { ms, count } = nextTick(lastDrawn.get(clock), Math.floor(clock.now()), drawn.readUInt16BE(0) & 0x7ff)
  lastDrawn.set(clock, { ms, count })
  const time = ms.toString(16).padStart(12, '0')
  const counter = (0x7000 | count).toString(16)
  const variant = (0x8000 | (drawn.readUInt16BE(2) & 0x3fff)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-${counter}-${variant}-${drawn.toString('hex', 4)}`
}

function nextTick(last: { ms: number; count: number } | undefined, now: number, start: number) {
  if (last === undefined || now > last.ms) return { ms: now, count: start }
  if (last.count < 0xfff) return { ms: last.ms, count: last.count + 1 }
  return { ms: last.ms + 1, count: start }
}

/**
 * What events and logs show in place of a key and its scope: 16 hexadecimal digits of SHA-256 over both, the key with its
 * length in front. Keys are never logged: who reads a key could ask for the stored reply.
 */
export function recordDigest(key: string, scope: string): string {
  return hash('sha256', recordName({ key, scope }), 'hex').slice(0, 16)
}

/** The inverse of {@link recordScope}. */
export function splitRecordScope(joined: string): { scope: string; operation: string | undefined } {
  const at = joined.indexOf('\u001f')
  if (at === -1) return { scope: joined, operation: undefined }
  return { scope: joined.slice(at + 1), operation: joined.slice(0, at) }
}
