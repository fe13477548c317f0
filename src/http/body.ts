/**
 * Reads the body of a Node request and hands it back, so that whoever comes later (a JSON parser, multer, a pipe) still sees all of it.
 *
 * The stream is read in paused mode, and never past what lies in its buffer: `read()` without a length would, after the last byte, have
 * `end` emitted in the next tick, and a parser that listens later would wait for it for ever. Once the message is complete all chunks are
 * put back in front; `end` comes after them, to whoever reads next.
 */
import type { IncomingMessage } from 'node:http'
import { fail } from '../errors.js'
import { decoded } from './encoding.js'
import { streamOf } from './http2.js'

/** Whether a request announces a body (RFC 9112, section 6.3). */
export function hasBody(req: IncomingMessage): boolean {
  const stream = streamOf(req)
  if (stream !== undefined) return !stream.endAfterHeaders
  const { 'content-length': length, 'transfer-encoding': transfer } = req.headers
  return transfer !== undefined || (length !== undefined && Number(length) !== 0)
}

/** Whether all of the body has arrived; over HTTP/2 a request whose client has left calls itself complete. */
function isComplete(req: IncomingMessage): boolean {
  const stream = streamOf(req)
  return stream === undefined ? req.complete : stream.readableEnded && !stream.aborted
}

/** Whether somebody has begun to read the body. */
export function isUntouched(req: IncomingMessage): boolean {
  return !req.readableDidRead && req.readableFlowing !== true && !req.readableEnded
}

/**
 * All bytes of the body; afterwards the request can be read from the start.
 *
 * @throws `BODY_TOO_LARGE` above `limitBytes`, after which the rest is read and dropped; an error with `status` 400 when the client
 * hangs up before the end
 */
export async function peekBody(req: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  if (!hasBody(req)) return new Uint8Array()
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) throw tooLarge(req)
  const chunks = await chunksOf(req, limitBytes)
  return Buffer.concat(chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)))
}

/** Reads all chunks and puts them back. */
function chunksOf(req: IncomingMessage, limitBytes: number): Promise<(Buffer | string)[]> {
  return new Promise((resolve, reject) => {
    const chunks: (Buffer | string)[] = []
    let length = 0
    if (req.destroyed) return reject(hungUp())
    req.on('readable', read)
    req.on('close', closed)
    req.on('error', closed)
    // What arrived before anybody listened is announced by no event.
    read()

    function read(): void {
      while (req.readableLength > 0) {
        const chunk: Buffer | string | null = req.read(req.readableLength)
        if (chunk === null) break
        chunks.push(chunk)
        length += Buffer.byteLength(chunk)
        if (length > limitBytes) {
          end(() => reject(tooLarge(req)))
          return
        }
      }
      // Only now: what is complete may still lie in the buffer.
      if (!isComplete(req) || req.readableLength > 0) return
      end(() => resolve(chunks))
      for (const chunk of [...chunks].reverse()) req.unshift(chunk)
    }

    function closed(): void {
      if (isComplete(req)) read()
      else end(() => reject(hungUp()))
    }

    function end(settle: () => void): void {
      req.removeListener('readable', read)
      req.removeListener('close', closed)
      req.removeListener('error', closed)
      settle()
    }
  })
}

function tooLarge(req: IncomingMessage): Error {
  // Unread bytes would block the connection; dropped, the reply arrives and the connection can be used again.
  process.nextTick(() => req.resume())
  return fail('BODY_TOO_LARGE')
}

function hungUp(): Error {
  const error = new Error('The client hung up before its request was complete')
  return Object.assign(error, { code: 'ECONNABORTED', status: 400, statusCode: 400, expose: true })
}

/**
 * The body without its content coding, so that a compressed retry of an uncompressed request is the same intent.
 *
 * @throws `BODY_INVALID` for bytes that are not what they say, `BODY_TOO_LARGE`
 */
export async function plainBody(
  bytes: Uint8Array,
  coding: string,
  limitBytes: number,
): Promise<Uint8Array | undefined> {
  try {
    return await decoded(bytes, coding, limitBytes)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ERR_BUFFER_TOO_LARGE') throw fail('BODY_TOO_LARGE')
    throw fail('BODY_INVALID', { detail: 'its content coding cannot be read' })
  }
}
