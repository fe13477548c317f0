/**
 * Bodies of the fetch kind: read whole up to a limit, from a copy where others read them too.
 */
import { fail } from '../errors.js'
import { plainBody } from './body.js'
import type { Content } from './content.js'

/** Reads a request's body from a copy, so that the handler finds its own unread. */
export async function readRequestBody(request: Request, limitBytes: number): Promise<Content | undefined> {
  if (request.body === null) return undefined
  if (request.bodyUsed) {
    throw fail('OPTION_INVALID', {
      detail: 'the body was read before idempotent(): put it in front of what reads',
    })
  }
  const bytes = await readUpTo(request.clone().body, limitBytes)
  return contentOf(bytes, (name) => request.headers.get(name), limitBytes)
}

/**
 * Bytes with what the headers say of them, without a content coding that is known here; undefined stands for more than the limit.
 *
 * @throws `BODY_TOO_LARGE`; `BODY_INVALID` for bytes that are not what they say
 */
export async function contentOf(
  sent: Uint8Array | undefined,
  header: (name: string) => string | null | undefined,
  limitBytes: number,
): Promise<Content> {
  if (sent === undefined || sent.length > limitBytes) {
    throw fail('BODY_TOO_LARGE', { detail: `the limit is ${limitBytes} bytes` })
  }
  const bytes = await plainBody(sent, header('content-encoding') ?? '', limitBytes)
  const contentType = header('content-type') ?? undefined
  // In a coding that is not known here the type says nothing about the bytes.
  if (bytes === undefined) return { bytes: sent }
  return { bytes, ...(contentType !== undefined && { contentType }) }
}

/**
 * The bytes of a stream; undefined when there are more than the limit. The rest is then left unread: cancelling would cut the connection
 * that the refusal has to go out on.
 */
async function readUpTo(
  stream: ReadableStream<Uint8Array> | null,
  limitBytes: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = stream?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done || value === undefined) return Buffer.concat(chunks)
    length += value.length
    if (length > limitBytes) return undefined
    chunks.push(value)
  }
}
