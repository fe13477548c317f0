/**
 * Numbers and texts as self-delimiting bytes, for records.
 *
 * Numbers are LEB128: seven bits a byte, lowest first, so that a length below 128 costs one byte. A reader never looks past
 * its end: what is cut short throws, and the caller turns that into one error with one meaning.
 */

/** Numbers of one byte, which most are. */
const short = Array.from({ length: 0x80 }, (_, value) => Uint8Array.of(value))

/** Appends a whole number from 0 to 2^53 - 1. */
export function packNumber(into: Uint8Array[], value: number): void {
  into.push(short[value] ?? long(value))
}

function long(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

/** Appends bytes with their length in front. */
export function packBytes(into: Uint8Array[], bytes: Uint8Array): void {
  packNumber(into, bytes.length)
  into.push(bytes)
}

/** Appends a text as UTF-8 with its length in front. */
export function packText(into: Uint8Array[], text: string): void {
  packBytes(into, Buffer.from(text, 'utf8'))
}

/** Reads what the functions above wrote, in the same order. Every read throws when the bytes do not hold it. */
export interface Reader {
  number(): number
  /** A view of the bytes, not a copy. */
  bytes(): Uint8Array
  text(): string
  /** Throws unless everything was read. */
  end(): void
}

/** A reader of `bytes` from `start` on. */
export function readerOf(bytes: Uint8Array, start: number): Reader {
  let at = start

  function number(): number {
    let value = 0
    // Eight bytes carry 56 bits, enough for 2^53; a longer number is no number of ours.
    for (let scale = 1; scale < 2 ** 56; scale *= 128) {
      const byte = bytes[at]
      if (byte === undefined) break
      at += 1
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    throw new RangeError('a number is cut short')
  }

  function take(): Uint8Array {
    const length = number()
    if (length > bytes.length - at) throw new RangeError('bytes are cut short')
    at += length
    return bytes.subarray(at - length, at)
  }

  function text(): string {
    const part = take()
    return Buffer.from(part.buffer, part.byteOffset, part.length).toString('utf8')
  }

  function end(): void {
    if (at !== bytes.length) throw new RangeError('bytes are left over')
  }

  return { number, bytes: take, text, end }
}
