/**
 * The canonical form of a decimal number, from its text: 1, 1.0, 1e0 and 10e-1 are `1;`, and no digit is lost, because the
 * text never becomes a double (rule 15: 9007199254740993 is not 9007199254740992).
 */
import type { Sink } from './canonical.js'
import { code, put } from './canonical.js'

/**
 * Exponents of up to 15 digits are summed as safe integers. A longer one is beyond any number that a program could hold; it
 * is written as it came, so that it costs no memory and no big arithmetic. `1e1000000000000000` and `10e999999999999999` are
 * then two numbers: a retry that rewrites such a number is a mismatch, and two different numbers are never one.
 */
const longestExponent = 15

interface Exponent {
  readonly negative: boolean
  /** Without leading zeros. */
  readonly start: number
  readonly end: number
}

/**
 * Writes the number whose text starts at `at` and returns where the text ends, or -1 when it is not a number by the grammar of
 * JSON. The form takes at most twice the bytes of the text; the caller has made room for them.
 */
export function putNumber(sink: Sink, source: Uint8Array, at: number): number {
  const negative = source[at] === code.minus
  const start = negative ? at + 1 : at
  const end = endOfDigits(source, start)
  if (end === start || (source[start] === code.zero && end > start + 1)) return -1
  const next = source[end]
  if (next === 0x2e || next === 0x65 || next === 0x45) return putDecimal(sink, source, negative, start, end)
  let last = end
  while (last > start && source[last - 1] === code.zero) last -= 1
  if (last === start) putZero(sink)
  else {
    if (negative) put(sink, code.minus)
    putRange(sink, source, start, last)
    putExponent(sink, end - last)
    put(sink, code.semicolon)
  }
  return end
}

/** The number as two runs of digits, before and after the point, and an exponent. */
function putDecimal(sink: Sink, source: Uint8Array, negative: boolean, start: number, point: number): number {
  const hasFraction = source[point] === 0x2e
  const fraction = hasFraction ? point + 1 : point
  const end = hasFraction ? endOfDigits(source, fraction) : point
  if (hasFraction && end === fraction) return -1
  const exponent = readExponent(source, end)
  if (exponent === undefined) return -1

  const from = sink.length
  if (negative) put(sink, code.minus)
  const digits = sink.length
  putSignificant(sink, source, start, point, digits)
  putSignificant(sink, source, fraction, end, digits)
  const written = sink.length
  while (sink.length > digits && sink.bytes[sink.length - 1] === code.zero) sink.length -= 1
  const shift = written - sink.length - (end - fraction)

  if (sink.length === digits) {
    sink.length = from
    putZero(sink)
  } else putShifted(sink, source, shift, exponent)
  return exponent.end
}

function putShifted(sink: Sink, source: Uint8Array, shift: number, exponent: Exponent): void {
  if (exponent.end - exponent.start <= longestExponent) {
    const size = numberOf(source, exponent.start, exponent.end)
    putExponent(sink, shift + (exponent.negative ? -size : size))
  } else {
    putExponent(sink, shift)
    put(sink, 0x45)
    if (exponent.negative) put(sink, code.minus)
    putRange(sink, source, exponent.start, exponent.end)
  }
  put(sink, code.semicolon)
}

/** The exponent at `at`; an absent one is an empty run of digits, and `undefined` is a malformed one. */
function readExponent(source: Uint8Array, at: number): Exponent | undefined {
  if (source[at] !== 0x65 && source[at] !== 0x45) return { negative: false, start: at, end: at }
  const sign = source[at + 1]
  const first = sign === 0x2b || sign === code.minus ? at + 2 : at + 1
  const end = endOfDigits(source, first)
  if (end === first) return undefined
  let start = first
  while (start < end && source[start] === code.zero) start += 1
  return { negative: sign === code.minus, start, end }
}

function endOfDigits(source: Uint8Array, start: number): number {
  let at = start
  for (; at < source.length; at += 1) {
    const byte = source[at] ?? 0
    if (byte < code.zero || byte > code.nine) break
  }
  return at
}

function numberOf(source: Uint8Array, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at += 1) value = value * 10 + (source[at] ?? 0) - code.zero
  return value
}

/** Copies digits, but for zeros in front of the first other digit. */
function putSignificant(sink: Sink, source: Uint8Array, start: number, end: number, first: number): void {
  let at = start
  if (sink.length === first) while (at < end && source[at] === code.zero) at += 1
  putRange(sink, source, at, end)
}

function putRange(sink: Sink, source: Uint8Array, start: number, end: number): void {
  const { bytes, length } = sink
  for (let at = start; at < end; at += 1) bytes[length + at - start] = source[at] ?? 0
  sink.length = length + end - start
}

function putZero(sink: Sink): void {
  put(sink, code.zero)
  put(sink, code.semicolon)
}

function putExponent(sink: Sink, exponent: number): void {
  if (exponent === 0) return
  put(sink, code.exponent)
  putInteger(sink, exponent)
}

/** Writes a safe integer in decimal; the caller has made room for 17 bytes. */
export function putInteger(sink: Sink, value: number): void {
  if (value > -10 && value < 10) {
    if (value < 0) put(sink, code.minus)
    put(sink, code.zero + Math.abs(value))
    return
  }
  sink.length += sink.bytes.write(String(value), sink.length, 'latin1')
}
