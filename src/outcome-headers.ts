/**
 * Headers of a stored reply, the common ones as one byte.
 *
 * A header starts with a number: 0 for a name written out, 1 and up for a name of the first table, 64 and up for a name with
 * its value from the second. `content-type: application/json; charset=utf-8` then costs 1 byte instead of 45, a tenth of a
 * small record, times every key a large table keeps. The order and the spelling of what is stored are those of the reply:
 * only an exact match, letter case included, takes a place of a table.
 */
import type { Reader } from './packing.js'
import { packNumber, packText } from './packing.js'

type Header = readonly [name: string, value: string]

// Frozen places: append only, for records that exist name their header by its place. At most 63.
const names = [
  'content-type',
  'location',
  'etag',
  'cache-control',
  'content-language',
  'content-encoding',
  'content-disposition',
  'content-location',
  'content-length',
  'last-modified',
  'vary',
  'retry-after',
  'link',
  'x-request-id',
] as const

// Frozen places, as above.
const pairs: readonly Header[] = [
  ['content-type', 'application/json; charset=utf-8'],
  ['content-type', 'application/json'],
  ['content-type', 'text/plain; charset=utf-8'],
  ['content-type', 'text/html; charset=utf-8'],
  ['content-type', 'application/octet-stream'],
  ['content-type', 'application/problem+json'],
  ['content-type', 'application/problem+json; charset=utf-8'],
  ['cache-control', 'no-store'],
]

const firstPair = 64
const placeOfName = new Map<string, number>(names.map((name, index) => [name, index + 1]))
const placeOfPair = new Map(pairs.map(([name, value], index) => [`${name}:${value}`, firstPair + index]))

/** Appends the headers, their count first. */
export function packHeaders(into: Uint8Array[], headers: readonly Header[]): void {
  packNumber(into, headers.length)
  for (const [name, value] of headers) {
    const pair = placeOfPair.get(`${name}:${value}`)
    if (pair !== undefined) {
      packNumber(into, pair)
      continue
    }
    const place = placeOfName.get(name) ?? 0
    packNumber(into, place)
    if (place === 0) packText(into, name)
    packText(into, value)
  }
}

/** Reads what {@link packHeaders} wrote; throws on a place that no table has. */
export function readHeaders(reader: Reader): Header[] {
  const headers: Header[] = []
  for (let left = reader.number(); left > 0; left -= 1) headers.push(readHeader(reader))
  return headers
}

function readHeader(reader: Reader): Header {
  const place = reader.number()
  if (place === 0) return [reader.text(), reader.text()]
  if (place < firstPair) return [known(names[place - 1]), reader.text()]
  return known(pairs[place - firstPair])
}

function known<T>(entry: T | undefined): T {
  if (entry === undefined) throw new RangeError('a header has no place in the tables of this version')
  return entry
}
