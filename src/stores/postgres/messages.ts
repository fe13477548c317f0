/**
 * The client's messages of PostgreSQL's protocol 3.0 that a flight is made of, written into one buffer: one write to the socket then carries
 * them all, where node-postgres' own functions make a buffer and a write of each (a third of a flight's CPU time).
 */
import type { Call, Value } from './driver.js'

/** A statement of a flight: under which name, and whether the server has to be told its text first. */
export interface Asked {
  readonly call: Call
  /** `''`: unnamed. */
  readonly name: string
  readonly parse: boolean
}

const code = { parse: 0x50, bind: 0x42, execute: 0x45, sync: 0x53 } as const
/** Execute of the unnamed portal, all rows. */
const execute = Buffer.from([code.execute, 0, 0, 0, 9, 0, 0, 0, 0, 0])
const sync = Buffer.from([code.sync, 0, 0, 0, 4])

/** Parse where asked for, Bind and Execute for each, and one Sync behind the last. No Describe: the store knows its columns. */
export function messagesOf(asked: readonly Asked[]): Buffer {
  const buffer = Buffer.allocUnsafe(asked.reduce((sum, one) => sum + mostBytes(one), sync.length))
  let at = 0
  for (const { call, name, parse } of asked) {
    if (parse) at = writeParse(buffer, at, name, call.statement.text)
    at = writeBind(buffer, at, name, call.values)
    at += execute.copy(buffer, at)
  }
  at += sync.copy(buffer, at)
  return buffer.subarray(0, at)
}

/** No UTF-16 unit takes more than three bytes. */
function mostBytes({ call: { statement, values }, name, parse }: Asked): number {
  let most = 32 + name.length * 3
  if (parse) most += 16 + (name.length + statement.text.length) * 3
  for (const value of values)
    most += 6 + (typeof value === 'string' ? value.length * 3 : (value?.length ?? 0))
  return most
}

function writeParse(buffer: Buffer, start: number, name: string, text: string): number {
  let at = start + 5
  at = writeText(buffer, at, name)
  at = writeText(buffer, at, text)
  // The types of the parameters are the server's to find.
  at = buffer.writeUInt16BE(0, at)
  return finish(buffer, start, code.parse, at)
}

function writeBind(buffer: Buffer, start: number, name: string, values: readonly Value[]): number {
  let at = start + 5
  at = buffer.writeUInt8(0, at)
  at = writeText(buffer, at, name)
  at = buffer.writeUInt16BE(values.length, at)
  for (const value of values) at = buffer.writeUInt16BE(value instanceof Uint8Array ? 1 : 0, at)
  at = buffer.writeUInt16BE(values.length, at)
  for (const value of values) at = writeValue(buffer, at, value)
  // Every column comes as text.
  at = buffer.writeUInt16BE(0, at)
  return finish(buffer, start, code.bind, at)
}

function writeValue(buffer: Buffer, start: number, value: Value): number {
  if (value === null) return buffer.writeInt32BE(-1, start)
  const from = start + 4
  const length = typeof value === 'string' ? buffer.write(value, from) : value.copy(buffer, from)
  buffer.writeInt32BE(length, start)
  return from + length
}

function writeText(buffer: Buffer, at: number, text: string): number {
  return buffer.writeUInt8(0, at + buffer.write(text, at))
}

/** The kind of a message and its length, which counts itself and not the kind. */
function finish(buffer: Buffer, start: number, kind: number, end: number): number {
  buffer.writeUInt8(kind, start)
  buffer.writeInt32BE(end - start - 1, start + 1)
  return end
}
