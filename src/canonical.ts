/**
 * The canonical form of a JSON value: equal bytes for equal values, other bytes for others. It is hashed at once, never stored
 * or read back, so it need not be JSON; it is frozen with the version of the fingerprint.
 *
 * Every value delimits itself, so values stand side by side without separators, and no two values have one form:
 *
 * | value | form |
 * |---|---|
 * | null, true, false | `n`, `t`, `f` |
 * | number | `-`? digits (`e` exponent)? `;` with neither leading nor trailing zeros in the digits; zero is `0;` |
 * | string | `"`, its code units as UTF-8, a lone surrogate in three bytes as UTF-8 would have it, 0xff (no byte of any of them) |
 * | array | `[` values `]` |
 * | object | `{` members, each a string and a value, in bytewise order of the strings, equal ones as they were sent `}` |
 * | `Uint8Array` | `b` length `:` bytes |
 *
 * The form is written into one growing buffer while the source is read, from bytes (`canonical-bytes.ts`) or from a value
 * (`canonical-value.ts`). An object notes where its members start and puts them in order when it ends, if they are not in
 * order already: slices of bytes are moved, and no text is built, parsed into objects or compared by locale.
 */
import { hash } from 'node:crypto'
import { fail } from './errors.js'

/** What the two readers write to. */
export interface Sink {
  bytes: Buffer
  length: number
  /** Where the members of all open objects start; the innermost object has the last ones. */
  starts: Int32Array
  count: number
}

/** Levels of arrays and objects. Above it the readers, which call themselves for each level, could meet the end of the stack. */
export const deepest = 512

export const code = {
  quote: 0x22,
  minus: 0x2d,
  zero: 0x30,
  nine: 0x39,
  semicolon: 0x3b,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
  exponent: 0x65,
  /** Ends a string: the one byte that neither UTF-8 nor a surrogate's three bytes can hold. */
  endOfString: 0xff,
} as const

/** A buffer above this size is not kept for the next request. */
const largestSpare = 262_144
let spare: Sink | undefined

/**
 * The SHA-256, in hexadecimal, of the form that `write` writes. The buffer is kept between calls; a call within a call (a
 * `toJSON` may do anything) gets one of its own.
 */
export function digestOf(expectedBytes: number, write: (sink: Sink) => void): string {
  const sink = spare ?? {
    bytes: Buffer.allocUnsafeSlow(4096),
    length: 0,
    starts: new Int32Array(64),
    count: 0,
  }
  spare = undefined
  sink.length = 0
  sink.count = 0
  reserve(sink, expectedBytes)
  try {
    write(sink)
    return hash('sha256', sink.bytes.subarray(0, sink.length), 'hex')
  } finally {
    if (sink.bytes.length <= largestSpare) spare = sink
  }
}

/** Makes room for `more` bytes. `sink.bytes` may be another buffer afterwards. */
export function reserve(sink: Sink, more: number): void {
  const needed = sink.length + more
  if (needed <= sink.bytes.length) return
  const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * sink.bytes.length))
  grown.set(sink.bytes.subarray(0, sink.length))
  sink.bytes = grown
}

/** Writes one byte; the caller has made room. */
export function put(sink: Sink, byte: number): void {
  sink.bytes[sink.length] = byte
  sink.length += 1
}

/** Notes that a member starts here. */
export function startMember(sink: Sink): void {
  if (sink.count === sink.starts.length) {
    const grown = new Int32Array(2 * sink.count)
    grown.set(sink.starts)
    sink.starts = grown
  }
  sink.starts[sink.count] = sink.length
  sink.count += 1
}

/** Puts the members noted since `base` in order and forgets them. */
export function endMembers(sink: Sink, base: number): void {
  const { bytes, starts, count } = sink
  for (let index = base + 1; index < count; index += 1) {
    if (compareMembers(bytes, startOf(starts, index - 1), startOf(starts, index)) > 0) {
      reorder(sink, base)
      break
    }
  }
  sink.count = base
}

function reorder(sink: Sink, base: number): void {
  const { starts, count, length } = sink
  const first = startOf(starts, base)
  reserve(sink, length - first)
  const { bytes } = sink
  let to = length
  for (const index of sortedMembers(sink, base)) {
    const end = index + 1 === count ? length : startOf(starts, index + 1)
    to = copy(bytes, to, startOf(starts, index), end)
  }
  bytes.copyWithin(first, length, to)
}

/** Stable in both ways: members of one name stay as they were sent. */
function sortedMembers(sink: Sink, base: number): number[] {
  const { bytes, starts, count } = sink
  const order: number[] = []
  // By insertion for the few members that objects have; above 24 the square of their number would tell.
  const few = count - base <= 24
  for (let index = base; index < count; index += 1) {
    let place = order.length
    const start = startOf(starts, index)
    while (few && place > 0 && compareMembers(bytes, startOf(starts, order[place - 1] ?? 0), start) > 0) {
      order[place] = order[place - 1] ?? 0
      place -= 1
    }
    order[place] = index
  }
  if (few) return order
  return order.sort((left, right) => compareMembers(bytes, startOf(starts, left), startOf(starts, right)))
}

function startOf(starts: Int32Array, index: number): number {
  return starts[index] ?? 0
}

/** Compares the names of two members. The end of a string is a byte that no string holds, so neither is read past its name. */
function compareMembers(bytes: Uint8Array, left: number, right: number): number {
  for (let offset = 1; ; offset += 1) {
    const one = bytes[left + offset] ?? 0
    const other = bytes[right + offset] ?? 0
    if (one !== other) return one - other
    if (one === code.endOfString) return 0
  }
}

/** Copies within a buffer and returns the end of the copy. Below 64 bytes a loop is faster than the call. */
function copy(bytes: Buffer, to: number, start: number, end: number): number {
  if (end - start > 64) bytes.copyWithin(to, start, end)
  else for (let from = start; from < end; from += 1) bytes[to + from - start] = bytes[from] ?? 0
  return to + end - start
}

/** Writes one code point, or a lone surrogate, as UTF-8 does; the caller has made room for four bytes. */
export function putCodePoint(sink: Sink, point: number): void {
  if (point < 0x80) {
    put(sink, point)
    return
  }
  if (point < 0x800) put(sink, 0xc0 | (point >> 6))
  else {
    if (point < 0x10000) put(sink, 0xe0 | (point >> 12))
    else {
      put(sink, 0xf0 | (point >> 18))
      put(sink, 0x80 | ((point >> 12) & 0x3f))
    }
    put(sink, 0x80 | ((point >> 6) & 0x3f))
  }
  put(sink, 0x80 | (point & 0x3f))
}

/** The error of a body that has no canonical form; `detail` never quotes it. */
export function invalid(detail: string) {
  return fail('BODY_INVALID', { detail })
}
