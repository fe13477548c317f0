/**
 * The canonical form of JSON bytes, in one pass: no text is decoded, no object built, and no number becomes a double.
 *
 * What JSON.parse refuses is refused here too, and nothing else, but for the depth: members of one name all count, so that two
 * bodies that parsers read differently are different bodies.
 */
import { isUtf8 } from 'node:buffer'
import type { Sink } from './canonical.js'
import { code, deepest, digestOf, endMembers, invalid, put, putCodePoint, startMember } from './canonical.js'
import { putNumber } from './canonical-number.js'

interface Scan {
  readonly source: Uint8Array
  at: number
  readonly sink: Sink
}

/**
 * The digest of a JSON text by value. Cost: about that of parsing it.
 *
 * @throws `BODY_INVALID` for bytes that are not UTF-8, not JSON, or nested deeper than 512 levels
 */
export function digestOfJson(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw invalid('it is not UTF-8')
  // The form takes at most twice the bytes of the text: `1.5` becomes `15e-1;`, and nothing grows more.
  return digestOf(2 * bytes.length + 16, (sink) => {
    const scan: Scan = { source: bytes, at: hasMark(bytes) ? 3 : 0, sink }
    scanValue(scan, 0)
    if (nextByte(scan) !== 0 || scan.at < bytes.length) throw malformed(scan)
  })
}

function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** The next byte that is not white space, without taking it; 0 at the end. */
function nextByte(scan: Scan): number {
  const { source } = scan
  let at = scan.at
  let byte = 0
  for (; at < source.length; at += 1) {
    byte = source[at] ?? 0
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break
  }
  scan.at = at
  return at < source.length ? byte : 0
}

function scanValue(scan: Scan, depth: number): void {
  switch (nextByte(scan)) {
    case code.openObject:
      scanObject(scan, depth + 1)
      break
    case code.openArray:
      scanArray(scan, depth + 1)
      break
    case code.quote:
      scanString(scan)
      break
    case 0x6e:
      scanWord(scan, 'null')
      break
    case 0x74:
      scanWord(scan, 'true')
      break
    case 0x66:
      scanWord(scan, 'false')
      break
    default:
      scanNumber(scan)
  }
}

function scanObject(scan: Scan, depth: number): void {
  if (depth > deepest) throw invalid(`it is nested deeper than ${deepest} levels`)
  const { sink } = scan
  const base = sink.count
  put(sink, code.openObject)
  scan.at += 1
  let next = nextByte(scan)
  while (next !== code.closeObject) {
    if (next !== code.quote) throw malformed(scan)
    startMember(sink)
    scanString(scan)
    if (nextByte(scan) !== 0x3a) throw malformed(scan)
    scan.at += 1
    scanValue(scan, depth)
    next = afterElement(scan, code.closeObject)
  }
  scan.at += 1
  endMembers(sink, base)
  put(sink, code.closeObject)
}

function scanArray(scan: Scan, depth: number): void {
  if (depth > deepest) throw invalid(`it is nested deeper than ${deepest} levels`)
  put(scan.sink, code.openArray)
  scan.at += 1
  let next = nextByte(scan)
  while (next !== code.closeArray) {
    scanValue(scan, depth)
    next = afterElement(scan, code.closeArray)
  }
  scan.at += 1
  put(scan.sink, code.closeArray)
}

/** Takes a comma and answers what follows it, which must not be the end; or answers the end. */
function afterElement(scan: Scan, close: number): number {
  const next = nextByte(scan)
  if (next === close) return next
  if (next !== 0x2c) throw malformed(scan)
  scan.at += 1
  const following = nextByte(scan)
  if (following === close) throw malformed(scan)
  return following
}

function scanWord(scan: Scan, word: string): void {
  const { source, at } = scan
  for (let index = 0; index < word.length; index += 1) {
    if (source[at + index] !== word.charCodeAt(index)) throw malformed(scan)
  }
  put(scan.sink, word.charCodeAt(0))
  scan.at = at + word.length
}

function scanNumber(scan: Scan): void {
  const end = putNumber(scan.sink, scan.source, scan.at)
  if (end === -1) throw malformed(scan)
  scan.at = end
}

function scanString(scan: Scan): void {
  const { source, sink } = scan
  put(sink, code.quote)
  scan.at += 1
  for (;;) {
    const end = endOfPlain(source, scan.at)
    putPlain(sink, source, scan.at, end)
    scan.at = end
    const byte = source[end] ?? 0
    if (byte === code.quote) break
    if (byte !== code.backslash) throw malformed(scan)
    scanEscape(scan)
  }
  scan.at += 1
  put(sink, code.endOfString)
}

/** Where a run of bytes that stand for themselves ends: at a quote, a backslash, a control character or the end. */
function endOfPlain(source: Uint8Array, start: number): number {
  let at = start
  for (; at < source.length; at += 1) {
    const byte = source[at] ?? 0
    if (byte === code.quote || byte === code.backslash || byte < 0x20) break
  }
  return at
}

/** Below 32 bytes a loop is faster than the call. */
function putPlain(sink: Sink, source: Uint8Array, start: number, end: number): void {
  const { bytes, length } = sink
  if (end - start > 32) bytes.set(source.subarray(start, end), length)
  else for (let at = start; at < end; at += 1) bytes[length + at - start] = source[at] ?? 0
  sink.length = length + end - start
}

function scanEscape(scan: Scan): void {
  const { source, sink } = scan
  const kind = source[scan.at + 1] ?? 0
  if (kind !== 0x75) {
    put(sink, unescaped(kind) ?? refuse(scan))
    scan.at += 2
    return
  }
  const unit = hexUnit(source, scan.at + 2) ?? refuse(scan)
  scan.at += 6
  // A pair of escaped surrogates is one character, the same as when it is sent as four bytes; an unpaired one stays as it is.
  const isHigh = unit >= 0xd800 && unit < 0xdc00
  const low =
    isHigh && source[scan.at] === code.backslash && source[scan.at + 1] === 0x75
      ? hexUnit(source, scan.at + 2)
      : 0
  if (low !== undefined && low >= 0xdc00 && low < 0xe000) {
    putCodePoint(sink, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    scan.at += 6
  } else putCodePoint(sink, unit)
}

function unescaped(kind: number): number | undefined {
  switch (kind) {
    case code.quote:
    case code.backslash:
    case 0x2f:
      return kind
    case 0x62:
      return 0x08
    case 0x66:
      return 0x0c
    case 0x6e:
      return 0x0a
    case 0x72:
      return 0x0d
    case 0x74:
      return 0x09
    default:
      return undefined
  }
}

function hexUnit(source: Uint8Array, start: number): number | undefined {
  let unit = 0
  for (let at = start; at < start + 4; at += 1) {
    const byte = source[at] ?? 0
    const letter = byte | 0x20
    if (byte >= code.zero && byte <= code.nine) unit = unit * 16 + byte - code.zero
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57
    else return undefined
  }
  return unit
}

function refuse(scan: Scan): never {
  throw malformed(scan)
}

function malformed(scan: Scan) {
  return invalid(`it is not JSON at byte ${scan.at}`)
}
