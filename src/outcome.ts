/**
 * What a record keeps of the work's answer, as versioned bytes (rules 9, 12 and 13).
 *
 * Layout of version 1: version byte, kind byte, the fields of the kind, CRC-32 of all before it in 4 bytes, big-endian. Every
 * field has its length in front, so a record cut short or grown is recognised by its lengths. The check sum is there for what
 * lengths cannot see: a column with a character set, a proxy or a hand that changed bytes inside a body. It costs 4 bytes
 * and less than a microsecond; without it a changed byte would be replayed as if the work had said it. A keyed sum would
 * keep nobody out: who can write the table can run the work.
 *
 * Records outlive deploys. A layout, a kind and a place in the header tables never change once released: a new one gets a new
 * number, and `test/unit/outcome.test.ts` holds records of each version that have to be read for ever.
 *
 * The replay marker is no part of a record: it says how an answer was given, not what was answered.
 */
import { crc32 } from 'node:zlib'
import { fail } from './errors.js'
import { packHeaders, readHeaders } from './outcome-headers.js'
import type { Reader } from './packing.js'
import { packBytes, packNumber, packText, readerOf } from './packing.js'

/** An HTTP reply as it is kept. */
export interface StoredReply {
  readonly status: number
  /** In the order of the reply, a repeated name as several entries. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** An error of the work that is kept as its answer (`attempt.keepFailure()`, `keep: 'all'`). */
export interface StoredFailure {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly status?: number
}

/** What the work answered. */
export type Outcome =
  /** The value of an API call: what JSON keeps of it, or `undefined`, or a `Uint8Array`. */
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'reply'; readonly reply: StoredReply }
  | { readonly kind: 'failure'; readonly failure: StoredFailure }
  /** Done, but the answer was too large or could not be written down (rule 12). */
  | { readonly kind: 'unreplayable'; readonly status?: number }

const version = 1
/** Frozen numbers: append only. */
const kinds = { json: 1, undefined: 2, bytes: 3, reply: 4, failure: 5, unreplayable: 6 } as const
const sumLength = 4
/** Headers are not counted against `maxBytes`, which is about bodies; no client reads more than this (Node's stops at 16 KiB). */
const largestHead = 65_536

/**
 * Writes an outcome down; never throws (rule 12). `maxBytes` counts the body of a reply, the JSON text or the bytes of a value,
 * the text of a failure: above it, or where the value has no JSON (a cycle, a `bigint`, a function, a getter that throws), what
 * is written is `unreplayable`, with the status that the outcome had.
 */
export function encodeOutcome(outcome: Outcome, maxBytes: number): Uint8Array {
  try {
    const fields = fieldsOf(outcome, maxBytes)
    if (fields !== undefined) return seal(fields)
  } catch {
    // The value's own toJSON or getter threw, or it is nested too deep to be written: as good as not serialisable.
  }
  return seal(unreplayable(statusOf(outcome)))
}

/** The parts of a record between version and check sum; `undefined` when they are too large or there are none. */
function fieldsOf(outcome: Outcome, maxBytes: number): Uint8Array[] | undefined {
  switch (outcome.kind) {
    case 'value':
      return valueFields(outcome.value, maxBytes)
    case 'reply':
      return replyFields(outcome.reply, maxBytes)
    case 'failure':
      // Picked by name: an Error handed in here would be written with whatever members it carries.
      return jsonFields(kinds.failure, pickFailure(outcome.failure), maxBytes)
    case 'unreplayable':
      return unreplayable(outcome.status)
    default:
      return outcome satisfies never
  }
}

function valueFields(value: unknown, maxBytes: number): Uint8Array[] | undefined {
  if (value === undefined) return start(kinds.undefined)
  if (!(value instanceof Uint8Array)) return jsonFields(kinds.json, value, maxBytes)
  if (value.length > maxBytes) return undefined
  const fields = start(kinds.bytes)
  packBytes(fields, value)
  return fields
}

function jsonFields(kind: number, value: unknown, maxBytes: number): Uint8Array[] | undefined {
  // JSON.stringify writes a lone surrogate as an escape, so the text is well-formed and UTF-8 keeps it exactly.
  const json: string | undefined = JSON.stringify(value)
  if (json === undefined || Buffer.byteLength(json) > maxBytes) return undefined
  const fields = start(kind)
  packText(fields, json)
  return fields
}

function replyFields(reply: StoredReply, maxBytes: number): Uint8Array[] | undefined {
  if (reply.body.length > maxBytes || !isStatus(reply.status)) return undefined
  const fields = start(kinds.reply)
  packNumber(fields, reply.status)
  packHeaders(fields, reply.headers)
  if (lengthOf(fields) > largestHead) return undefined
  packBytes(fields, reply.body)
  return fields
}

function unreplayable(status: number | undefined): Uint8Array[] {
  const fields = start(kinds.unreplayable)
  packNumber(fields, isStatus(status) ? status : 0)
  return fields
}

function start(kind: number): Uint8Array[] {
  return [Uint8Array.of(version, kind)]
}

function seal(fields: Uint8Array[]): Uint8Array {
  const length = lengthOf(fields)
  const record = Buffer.concat(fields, length + sumLength)
  record.writeUInt32BE(crc32(record.subarray(0, length)), length)
  return record
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0)
}

function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && Number(status) >= 100 && Number(status) <= 999
}

/** The HTTP status that an outcome had, if it had one. */
export function statusOf(outcome: Outcome): number | undefined {
  switch (outcome.kind) {
    case 'value':
      return undefined
    case 'reply':
      return outcome.reply.status
    case 'failure':
      return outcome.failure.status
    case 'unreplayable':
      return outcome.status
    default:
      return outcome satisfies never
  }
}

function pickFailure({ name, message, code, status }: StoredFailure): StoredFailure {
  return {
    name: String(name),
    message: String(message),
    ...(code === undefined ? {} : { code: String(code) }),
    ...(isStatus(status) ? { status } : {}),
  }
}

/**
 * Reads an outcome back. A reply's body is a view of `bytes`; a value is the caller's own.
 *
 * @throws `RECORD_CORRUPT` for bytes that are cut short, changed, or of a version or kind that this release does not know.
 * A record that cannot be read is never taken for an absent one (rule 13).
 */
export function decodeOutcome(bytes: Uint8Array): Outcome {
  if (bytes.length < 2 + sumLength) throw corrupt('it is cut short')
  // Before the sum: a later version may have another one, and its reader should say "unknown version", not "changed bytes".
  if (bytes[0] !== version) throw corrupt(`version ${bytes[0]} of an outcome is unknown to this release`)
  const end = bytes.length - sumLength
  const sum = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readUInt32BE(end)
  if (crc32(bytes.subarray(0, end)) !== sum) throw corrupt('its check sum does not match')
  try {
    const reader = readerOf(bytes.subarray(0, end), 2)
    const outcome = read(bytes[1], reader)
    reader.end()
    return outcome
  } catch {
    // Without the cause: the message of JSON.parse quotes the text, which may be anybody's.
    throw corrupt('its fields do not fit their kind')
  }
}

function read(kind: number | undefined, reader: Reader): Outcome {
  switch (kind) {
    case kinds.json:
      return { kind: 'value', value: JSON.parse(reader.text()) }
    case kinds.undefined:
      return { kind: 'value', value: undefined }
    case kinds.bytes:
      return { kind: 'value', value: Uint8Array.from(reader.bytes()) }
    case kinds.reply:
      return { kind: 'reply', reply: readReply(reader) }
    case kinds.failure:
      return { kind: 'failure', failure: readFailure(reader) }
    case kinds.unreplayable:
      return readUnreplayable(reader)
    default:
      throw new RangeError(`kind ${kind} is unknown to this release`)
  }
}

function readReply(reader: Reader): StoredReply {
  const status = reader.number()
  const headers = readHeaders(reader)
  return { status, headers, body: reader.bytes() }
}

function readFailure(reader: Reader): StoredFailure {
  const failure = JSON.parse(reader.text())
  if (typeof failure.name !== 'string' || typeof failure.message !== 'string')
    throw new TypeError('no failure')
  return pickFailure(failure)
}

function readUnreplayable(reader: Reader): Outcome {
  const status = reader.number()
  return status === 0 ? { kind: 'unreplayable' } : { kind: 'unreplayable', status }
}

function corrupt(detail: string) {
  return fail('RECORD_CORRUPT', { detail })
}
