/**
 * Where a Hono request's body is found: in the stream if nobody has read it, else in what Hono remembers of the read.
 */
import { fail } from '../errors.js'
import type { Content } from './content.js'
import { readRequestBody } from './fetch-body.js'
import type { HonoRequest } from './hono-types.js'

/** Reads the body without taking it from those that come later. */
export async function readHonoBody(req: HonoRequest, limitBytes: number): Promise<Content | undefined> {
  const [read] = Object.keys(req.bodyCache)
  const content = read === undefined ? await readRequestBody(req.raw, limitBytes) : await readAgain(req, read)
  const length = content?.bytes?.length ?? 0
  if (length > limitBytes) throw fail('BODY_TOO_LARGE', { detail: `the limit is ${limitBytes} bytes` })
  return length === 0 ? undefined : content
}

/** What was read first is what was sent; everything else Hono makes from it. */
async function readAgain(req: HonoRequest, read: string): Promise<Content> {
  const contentType = req.header('content-type') ?? ''
  if (read === 'formData') return readForm(req, contentType)
  const bytes = new Uint8Array(await req.arrayBuffer())
  if (isUrlEncoded(contentType) || /^multipart\/form-data\s*;/i.test(contentType)) {
    return { bytes, contentType, parsed: await req.parseBody({ all: true }) }
  }
  return { bytes, ...(contentType !== '' && { contentType }) }
}

/** Of a form that was only ever read as one the bytes are gone. They are written once more, the same for the same fields. */
async function readForm(req: HonoRequest, contentType: string): Promise<Content> {
  const form = await req.formData()
  const fields = isUrlEncoded(contentType) ? new URLSearchParams([...form] as [string, string][]) : form
  const written = new Response(fields)
  return {
    bytes: new Uint8Array(await written.arrayBuffer()),
    contentType: written.headers.get('content-type') ?? contentType,
    parsed: await req.parseBody({ all: true }),
  }
}

function isUrlEncoded(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)
}
