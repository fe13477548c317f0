/**
 * What a fetch-style handler answers: a `Response` whose body may still be under way.
 *
 * A body is taken whole where that is possible, and sent once the outcome is durable (rule 8). One that is larger than is remembered, or
 * a stream of events, goes through as it comes in lease mode; its last chunk waits, so that nobody sees the end of a reply before it is
 * stored. In transaction mode nothing leaves before the commit.
 */
import type { StoredReply } from '../outcome.js'
import { isBodyless } from '../reply-headers.js'
import type { Performed } from './exchange.js'
import { mostHeldBytes } from './held-body.js'
import type { Settings } from './options.js'
import { failOfOurs } from './user-code.js'

export interface ResponseCapture {
  readonly performed: Promise<Performed>
  /** A response that goes out before the handler's body has ended. */
  readonly early: Promise<Response>
  /**
   * Lets an early response end, or breaks it off: what was seen of it cannot be taken for an answer. A handler that is still sending is told, for
   * its body is cancelled.
   */
  conclude(how: 'end' | 'break'): void
}

/** Takes a response apart; `error` is what was thrown, where a response was thrown. */
export function captureResponse(response: Response, { policy }: Settings, error?: unknown): ResponseCapture {
  const limitBytes =
    policy.mode === 'transaction' ? mostHeldBytes(policy.maxReplyBytes) : policy.maxReplyBytes
  let goEarly: (response: Response) => void = () => undefined
  const early = new Promise<Response>((resolve) => {
    goEarly = resolve
  })
  let conclude: ResponseCapture['conclude'] = () => undefined

  async function take(): Promise<Performed> {
    const reader = response.body?.getReader()
    conclude = (how) => {
      if (how === 'break') reader?.cancel().catch(() => undefined)
    }
    const chunks: Uint8Array[] = []
    let length = 0
    let streaming = policy.mode === 'lease' && isEventStream(response)
    while (reader !== undefined && !streaming) {
      const { done, value } = await reader.read()
      if (done) return performedOf(response, error, Buffer.concat(chunks))
      chunks.push(value)
      length += value.length
      if (length <= limitBytes) continue
      if (policy.mode === 'transaction') {
        await reader.cancel()
        throw failOfOurs('REPLY_TOO_LARGE', {
          detail: `${limitBytes} bytes are the most that can wait for the commit`,
        })
      }
      streaming = true
    }
    if (reader === undefined) return performedOf(response, error, new Uint8Array())
    await pass(chunks, reader)
    return performedOf(response, error, undefined)
  }

  /** Sends on what comes, one chunk behind; resolves when all but the last has been taken. */
  function pass(chunks: Uint8Array[], reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    return new Promise((resolve, reject) => {
      let isOpen = true
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          conclude = (how) => {
            if (how === 'break') {
              isOpen = false
              controller.error(new Error('The outcome could not be stored'))
              reader.cancel().catch(() => undefined)
            } else if (isOpen) {
              for (const chunk of chunks) controller.enqueue(chunk)
              controller.close()
            }
          }
        },
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read()
            if (done) return resolve()
            chunks.push(value)
            const next = chunks.length > 1 || isEventStream(response) ? chunks.shift() : undefined
            if (next !== undefined && isOpen) controller.enqueue(next)
          } catch (cause) {
            controller.error(cause)
            reject(cause)
          }
        },
        // Whoever received it is gone: the handler's work goes on to its end all the same.
        cancel: () => {
          isOpen = false
          drain(reader).then(resolve, reject)
        },
      })
      goEarly(new Response(body, { status: response.status, headers: response.headers }))
    })
  }

  return { performed: take(), early, conclude: (how) => conclude(how) }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '')
}

function performedOf(response: Response, error: unknown, body: Uint8Array | undefined): Performed {
  const headers = [...response.headers]
  const reply: StoredReply = { status: response.status, headers, body: body ?? new Uint8Array() }
  return {
    reply,
    whole: body !== undefined,
    fault: error === undefined ? 'none' : 'thrown',
    ...(error !== undefined && { error }),
  }
}

/** A reply as a response. */
export function responseOf({ status, headers, body }: StoredReply): Response {
  const own = new Headers()
  for (const [name, value] of headers) own.append(name, value)
  const bytes = isBodyless(status) ? null : Uint8Array.from(body)
  // A handler that streams names its coding; beside a length it would make the message one that clients refuse (RFC 9112, section 6.1).
  own.delete('transfer-encoding')
  if (bytes !== null) own.set('content-length', String(bytes.length))
  return new Response(bytes, { status, headers: own })
}
