/**
 * Finds the messages in what a client of PostgreSQL sends: a type byte and a length, but for the first ones, which have no type.
 */

export interface ClientMessage {
  /** The protocol's letter (`P` parse, `B` bind, `E` execute, `S` sync, `Q` query, `X` end, …), or `startup`, `ssl`, `gss`, `cancel`. */
  readonly type: string
  /** The statement, where the message carries one. */
  readonly text: string
  readonly bytes: Buffer
}

/** Codes in the place of a protocol version: requests that come before the start, or instead of it. */
const requests = new Map([
  [80877102, 'cancel'],
  [80877103, 'ssl'],
  [80877104, 'gss'],
])

/** Reads a stream chunk by chunk; what is incomplete is kept until it is whole. */
export function messageReader(): (chunk: Buffer) => readonly ClientMessage[] {
  let rest: Buffer = Buffer.alloc(0)
  let started = false

  function next(): ClientMessage | undefined {
    const head = started ? 1 : 0
    if (rest.length < head + 4) return undefined
    const length = head + rest.readInt32BE(head)
    if (rest.length < length) return undefined
    const bytes = rest.subarray(0, length)
    rest = rest.subarray(length)
    if (started) return { type: String.fromCharCode(bytes[0] ?? 0), text: statementOf(bytes), bytes }
    const type = requests.get(bytes.readInt32BE(4)) ?? 'startup'
    started = type === 'startup'
    return { type, text: '', bytes }
  }

  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const messages: ClientMessage[] = []
    for (let message = next(); message !== undefined; message = next()) messages.push(message)
    return messages
  }
}

/** `P` has the name of the statement first, `Q` the statement alone. */
function statementOf(bytes: Buffer): string {
  const type = bytes[0]
  if (type !== 0x50 && type !== 0x51) return ''
  const from = type === 0x50 ? bytes.indexOf(0, 5) + 1 : 5
  return bytes.toString('utf8', from, bytes.indexOf(0, from))
}
