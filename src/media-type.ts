/**
 * How a content type says that a body is to be read, and the digest of a form's parts.
 */
import { createHash } from 'node:crypto'

/** The reading of a body that a content type asks for. */
export interface MediaType {
  readonly kind: 'json' | 'form' | 'bytes'
  /** What separates the parts of a form; absent where the type names none that could. */
  readonly boundary?: string
}

const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i
const boundaryParameter = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^";,\s]*))/i

/**
 * Reads a content type. JSON is `application/json` and every type that ends in `+json`, in UTF-8, which is also meant when no
 * character set is named (RFC 8259, section 8.1); in any other character set it counts by bytes.
 */
export function readMediaType(contentType = ''): MediaType {
  const [essence = ''] = contentType.split(';', 1)
  const type = essence.trim().toLowerCase()
  if (type === 'multipart/form-data') return formType(contentType)
  if (type !== 'application/json' && !/^[^/]+\/.+\+json$/.test(type)) return { kind: 'bytes' }
  const named = charset.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8'
  return { kind: named === 'utf-8' || named === 'utf8' ? 'json' : 'bytes' }
}

/** RFC 2046, section 5.1.1: a boundary has 1 to 70 characters. */
function formType(contentType: string): MediaType {
  const found = boundaryParameter.exec(contentType)
  const boundary = found?.[1] ?? found?.[2] ?? ''
  return boundary === '' || boundary.length > 70 ? { kind: 'form' } : { kind: 'form', boundary }
}

/**
 * The digest of a form without its boundary, which clients draw anew for every attempt: the stretches of bytes between the
 * delimiters (CRLF, two hyphens, the boundary), each with its length in front. Two forms have one digest only if one becomes
 * the other when its boundary is replaced; headers of parts, file names and order count as they are.
 */
export function digestOfParts(bytes: Uint8Array, boundary: string): string {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const digest = createHash('sha256')
  // A form without preamble starts with its first delimiter, whose CRLF is then absent.
  let start = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)) ? delimiter.length - 2 : 0
  digest.update(start === 0 ? 'preamble;' : 'parts;')
  for (;;) {
    const end = body.indexOf(delimiter, start)
    const part = body.subarray(start, end === -1 ? body.length : end)
    digest.update(`${part.length}:`).update(part)
    if (end === -1) return digest.digest('hex')
    start = end + delimiter.length
  }
}
