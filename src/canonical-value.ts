/**
 * The canonical form of a JavaScript value: that of the text which JSON.stringify would make of it, so that a parsed body and
 * its bytes have one fingerprint wherever the parser lost no digit (rule 15).
 *
 * JSON's rules hold: own enumerable members with string names, `toJSON` honoured, members without JSON absent, elements
 * without JSON null, NaN and the infinities null. Beyond them, a `bigint` counts as the number it is, and a `Uint8Array` by its
 * bytes under a tag of its own. Refused is what JSON shows as `{}` though it has content (Map, Set, RegExp, Error, ArrayBuffer),
 * because two different ones would be one intent.
 */
import type { Sink } from './canonical.js'
import {
  code,
  deepest,
  digestOf,
  endMembers,
  invalid,
  put,
  putCodePoint,
  reserve,
  startMember,
} from './canonical.js'
import { putInteger, putNumber } from './canonical-number.js'

/**
 * The digest of a value; `undefined` for a value that has no JSON because it is `undefined`. Cost: about that of
 * JSON.stringify.
 *
 * @throws `BODY_INVALID` for a function or a symbol, for a cycle or more than 512 levels, for a Map, a Set and the like
 */
export function digestOfValue(input: unknown): string | undefined {
  const value = shown(input, '')
  if (value === undefined) return undefined
  if (isAbsent(value)) throw invalid(`a ${typeof value} has no JSON`)
  return digestOf(256, (sink) => writeValue(sink, value, 0))
}

/** What JSON sees in place of a value: the answer of its toJSON, or what a wrapper object holds. */
function shown(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const { toJSON } = value as { toJSON?: unknown }
  const answer: unknown = typeof toJSON === 'function' ? toJSON.call(value, String(name)) : value
  if (answer instanceof Number) return Number(answer)
  if (answer instanceof String) return String(answer)
  if (answer instanceof Boolean || answer instanceof BigInt) return answer.valueOf()
  return answer
}

function isAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'function' || typeof value === 'symbol'
}

function writeValue(sink: Sink, value: unknown, depth: number): void {
  reserve(sink, 32)
  switch (typeof value) {
    case 'string':
      writeString(sink, value)
      break
    case 'number':
      writeNumber(sink, value)
      break
    case 'boolean':
      put(sink, value ? 0x74 : 0x66)
      break
    case 'bigint':
      writeDecimal(sink, String(value))
      break
    case 'object':
      if (value === null) put(sink, 0x6e)
      else writeContent(sink, value, depth + 1)
      break
    default:
      // Elements of an array that have no JSON; members and whole values without it never come here.
      put(sink, 0x6e)
  }
}

function writeContent(sink: Sink, value: object, depth: number): void {
  if (depth > deepest) throw invalid(`it is cyclic or nested deeper than ${deepest} levels`)
  if (value instanceof Uint8Array) writeBytes(sink, value)
  else if (Array.isArray(value)) writeArray(sink, value, depth)
  else writeObject(sink, value, depth)
}

function writeArray(sink: Sink, array: readonly unknown[], depth: number): void {
  put(sink, code.openArray)
  for (let index = 0; index < array.length; index += 1) writeValue(sink, shown(array[index], index), depth)
  reserve(sink, 1)
  put(sink, code.closeArray)
}

function writeObject(sink: Sink, object: object, depth: number): void {
  const base = sink.count
  const names = Object.keys(object)
  if (names.length === 0) refuseHidden(object)
  put(sink, code.openObject)
  for (const name of names) {
    const value = shown((object as Record<string, unknown>)[name], name)
    if (isAbsent(value)) continue
    startMember(sink)
    writeString(sink, name)
    writeValue(sink, value, depth)
  }
  endMembers(sink, base)
  reserve(sink, 1)
  put(sink, code.closeObject)
}

function refuseHidden(object: object): void {
  const tag = Object.prototype.toString.call(object)
  if (tag !== '[object Object]')
    throw invalid(`JSON sees nothing of an ${tag.slice(1, -1)}; give its content instead`)
}

function writeString(sink: Sink, text: string): void {
  // Three bytes a code unit at most, and the marks around it.
  reserve(sink, 3 * text.length + 2)
  put(sink, code.quote)
  const { bytes } = sink
  let { length } = sink
  let at = 0
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit >= 0x80) break
    bytes[length] = unit
    length += 1
  }
  sink.length = length
  while (at < text.length) {
    const point = text.codePointAt(at) ?? 0
    putCodePoint(sink, point)
    at += point > 0xffff ? 2 : 1
  }
  put(sink, code.endOfString)
}

function writeNumber(sink: Sink, value: number): void {
  if (!Number.isFinite(value)) put(sink, 0x6e)
  else if ((value | 0) !== value || value % 10 === 0) writeDecimal(sink, String(value))
  else {
    // A small integer without a zero at its end is its own canonical form.
    putInteger(sink, value)
    put(sink, code.semicolon)
  }
}

function writeDecimal(sink: Sink, text: string): void {
  reserve(sink, 2 * text.length + 16)
  putNumber(sink, Buffer.from(text, 'latin1'), 0)
}

function writeBytes(sink: Sink, bytes: Uint8Array): void {
  reserve(sink, bytes.length + 32)
  put(sink, 0x62)
  putInteger(sink, bytes.length)
  put(sink, 0x3a)
  sink.bytes.set(bytes, sink.length)
  sink.length += bytes.length
}
