/** Answers of the suite's handlers, and the same as a reply for handlers that return one. */
import { type Reply, reply } from '../../http/reply.js'
import type { Said } from './harness.js'

/** All byte values, so that nothing on the way can take them for a text. */
const allBytes = Uint8Array.from({ length: 256 }, (_, index) => index)

/** One of each way to answer that is kept, with what a replay must repeat. */
export const keptAnswers: Readonly<Record<string, Said>> = {
  // Spaces and numbers as no serialiser would write them again.
  'a JSON text with its own spacing': {
    do: 'text',
    status: 201,
    text: '{"b":1.0,  "a":1e2}',
    headers: { 'content-type': 'application/json' },
  },
  'a JSON value': {
    do: 'json',
    status: 201,
    value: { orderId: 7, name: 'caf\u00e9' },
    headers: { location: '/orders/7' },
  },
  'a text': { do: 'text', status: 200, text: 'caf\u00e9 \u{1f511}' },
  'all 256 byte values': {
    do: 'bytes',
    status: 200,
    bytes: allBytes,
    headers: { 'content-type': 'application/octet-stream' },
  },
  'a vendor type': {
    do: 'bytes',
    status: 202,
    bytes: Buffer.from('a;b\n'),
    headers: { 'content-type': 'application/vnd.example+csv', 'content-disposition': 'attachment' },
  },
  'an empty answer': { do: 'empty', status: 204 },
  'a redirect': { do: 'redirect', status: 303, location: '/orders/7' },
  'a stream': {
    do: 'stream',
    status: 200,
    pieces: [allBytes, allBytes, Buffer.from('end')],
    headers: { 'content-type': 'application/octet-stream' },
  },
  'several writes': {
    do: 'writes',
    status: 200,
    pieces: ['one, ', '', 'two, ', 'three'],
    headers: { 'content-type': 'text/plain' },
  },
  'a refusal of the request': { do: 'json', status: 404, value: { error: 'no such customer' } },
  'a refusal with the status of a mismatch': { do: 'json', status: 422, value: { error: 'not payable' } },
}

/** The same answer as `reply()` says it; a throw is thrown. */
export function replyOf(said: Said): Reply {
  switch (said.do) {
    case 'json':
      return reply(said.status, said.value, said.headers)
    case 'text':
      return reply(said.status, said.text, said.headers)
    case 'bytes':
      return reply(said.status, said.bytes, said.headers)
    case 'stream':
      return reply(said.status, Buffer.concat(said.pieces), said.headers)
    case 'writes':
      return reply(said.status, said.pieces.join(''), said.headers)
    case 'empty':
      return reply(said.status, undefined, said.headers)
    case 'redirect':
      return reply(said.status, undefined, { location: said.location })
    case 'throw':
      throw said.error
    default:
      return said satisfies never
  }
}

/** The status an answer was given; a throw has none of its own. */
export function statusOf(said: Said): number {
  return said.do === 'throw' ? 500 : said.status
}
