/**
 * Where a Hono request's body is found: in the stream if nobody has read it, else in what Hono remembers of the read.
 */
import type { Content } from './content.js'
import { contentOf, readRequestBody } from './fetch-body.js'
import type { HonoRequest } from './hono-types.js'

/** Reads the body without taking it from those that come later. */
export async function readHonoBody(req: HonoRequest, limitBytes: number): Promise<Content | undefined> {
  const [read] = Object.keys(req.bodyCache)
  const content =
    read === undefined ? await readRequestBody(req.raw, limitBytes) : await readAgain(req, read, limitBytes)
  return content?.bytes?.length === 0 ? undefined : content
}

/** What was read first is what was sent; everything else Hono makes from it. */
async function readAgain(req: HonoRequest, read: string, limitBytes: number): Promise<Content> {
  const contentType = req.header('content-type') ?? ''
  if (read === 'formData') return readForm(req, contentType, limitBytes)
  const bytes = new Uint8Array(await req.arrayBuffer())
  const content = await contentOf(bytes, (name) => req.header(name), limitBytes)
  if (!isUrlEncoded(contentType) && !/^multipart\/form-data\s*;/i.test(contentType)) return content
  return { ...content, parsed: await req.parseBody({ all: true }) }
}

/** Of a form that was only ever read as one the bytes are gone. They are written once more, the same for the same fields. */
async function readForm(req: HonoRequest, contentType: string, limitBytes: number): Promise<Content> {
  const form = await req.formData()
  const fields = isUrlEncoded(contentType) ? new URLSearchParams([...form] as [string, string][]) : form
  const written = new Response(fields)
  const bytes = new Uint8Array(await written.arrayBuffer())
  const content = await contentOf(bytes, (name) => written.headers.get(name), limitBytes)
  return { ...content, parsed: await req.parseBody({ all: true }) }
}

function isUrlEncoded(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)
}
