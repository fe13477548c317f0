/**
 * Where an Express request's body is found: kept bytes first, then the stream if nobody has read it, then what a parser left.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { fail } from '../errors.js'
import { hasBody, isUntouched, peekBody, plainBody } from './body.js'
import type { Content } from './content.js'
import type { RequestExtras } from './express-types.js'

// Of the registry, so that the bytes kept by one copy of the package are found by another.
const keptBytes = Symbol.for('retrysafe.rawBody')

/**
 * Keeps the bytes of a body while a parser reads it, so that numbers beyond 2^53 and repeated members count as they were sent (rule 15):
 * `express.json({ verify: rawBody })`. Costs a reference, not a copy. A plain Buffer at `req.rawBody` is used as well.
 */
export function rawBody(req: IncomingMessage, _res: unknown, bytes: Uint8Array): void {
  Object.defineProperty(req, keptBytes, { value: bytes, configurable: true })
}

/** Reads the body without taking it from those that come later; `found` has what parsers have left. */
export async function readExpressBody(
  req: IncomingMessage,
  limitBytes: number,
  found: RequestExtras = req as RequestExtras,
): Promise<Content | undefined> {
  const contentType = req.headers['content-type']
  const typed = contentType === undefined ? {} : { contentType }
  const kept = (req as { [keptBytes]?: Uint8Array })[keptBytes] ?? found.rawBody
  if (kept instanceof Uint8Array) return { ...typed, bytes: kept, parsed: found.body }
  if (!hasBody(req)) return undefined
  if (!isUntouched(req)) return { ...typed, ...(await parsedBody(found)) }
  const sent = await peekBody(req, limitBytes)
  const bytes = await plainBody(sent, req.headers['content-encoding'] ?? '', limitBytes)
  // In a coding that is not known here the type says nothing about the bytes.
  return bytes === undefined ? { bytes: sent } : { ...typed, bytes }
}

async function parsedBody(req: RequestExtras): Promise<Content> {
  const files = [req.file, req.files].flatMap(filesOf)
  const parsed = req.body ?? (files.length > 0 ? {} : undefined)
  if (parsed === undefined) {
    throw fail('OPTION_INVALID', {
      detail:
        'the body was read before idempotent() and is in neither req.body nor req.rawBody: mount the parser with { verify: rawBody }',
    })
  }
  if (files.length === 0) return { parsed }
  return { parsed, counted: { fields: parsed, files: await Promise.all(files.map(digestOfFile)) } }
}

/** multer leaves one file, a list, or lists by field. */
function filesOf(files: unknown): unknown[] {
  if (typeof files !== 'object' || files === null) return []
  if (Array.isArray(files)) return files
  return 'fieldname' in files ? [files] : Object.values(files).flat()
}

/** A file counts by its name and content; the path that a disk storage draws for it does not. */
async function digestOfFile(file: unknown): Promise<unknown> {
  const { fieldname, originalname, mimetype, size, buffer, path } = file as Record<string, unknown>
  const digest = createHash('sha256')
  if (buffer instanceof Uint8Array) digest.update(buffer)
  else if (typeof path === 'string') for await (const chunk of createReadStream(path)) digest.update(chunk)
  else
    throw fail('OPTION_INVALID', { detail: 'an uploaded file has neither buffer nor path to be compared by' })
  return { fieldname, originalname, mimetype, size, sha256: digest.digest('hex') }
}
