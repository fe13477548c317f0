/**
 * Content codings: a body that one client took compressed may be replayed to one that cannot read it, and a request's body may
 * come compressed.
 */
import { kMaxLength } from 'node:buffer'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { StoredReply } from '../outcome.js'
import { headerOf } from './headers.js'

type Decode = (bytes: Uint8Array, limits: { maxOutputLength: number }) => Promise<Buffer>

const decoders: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip) as Decode,
  'x-gzip': promisify(gunzip) as Decode,
  deflate: promisify(inflate) as Decode,
  br: promisify(brotliDecompress) as Decode,
}

/**
 * The bytes behind a content coding; undefined for a coding that is not known here, or several at once. Rejects for bytes that are not
 * what they say, or (`ERR_BUFFER_TOO_LARGE`) are more than `maxBytes`.
 */
export async function decoded(
  bytes: Uint8Array,
  coding: string,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const name = coding.trim().toLowerCase()
  if (name === '' || name === 'identity') return bytes
  const decode = Object.hasOwn(decoders, name) ? decoders[name] : undefined
  // zlib wants room for one byte at least.
  return decode?.(bytes, { maxOutputLength: Math.min(Math.max(1, maxBytes), kMaxLength) })
}

/**
 * How many times larger than `maxReplyBytes` a replay may become when its coding is taken off. JSON and HTML shrink to a tenth, seldom to a
 * twentieth; gzip can shrink zeros to a thousandth, and 300 KB stored would then be 300 MB for every retry that asks.
 */
const largestDecoded = 16

/**
 * The reply with its body decoded if the caller does not take its coding. A coding that is not known here is left as it is, and so is
 * a body that would become larger than 16 times `maxReplyBytes`: it is sent as stored, and says so in `content-encoding`.
 */
export async function asAccepted(
  reply: StoredReply,
  acceptEncoding: string,
  maxReplyBytes: number,
): Promise<StoredReply> {
  const coding = headerOf(reply, 'content-encoding')
  if (coding === undefined || reply.body.length === 0 || takes(acceptEncoding, coding)) return reply
  const body = await decoded(reply.body, coding, largestDecoded * maxReplyBytes).catch(() => undefined)
  if (body === undefined) return reply
  return { ...reply, headers: reply.headers.filter(([name]) => name !== 'content-encoding'), body }
}

/**
 * RFC 9110, section 12.5.3, with one difference: no header at all means no coding. The first caller chose the coding; a retry that
 * says nothing can be sure to read only what is not coded.
 */
function takes(acceptEncoding: string, coding: string): boolean {
  const weights = new Map<string, number>()
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    if (name !== '') weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  return (weights.get(coding.trim().toLowerCase()) ?? weights.get('*') ?? 0) > 0
}
