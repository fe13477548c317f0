/** How an attempt ended, whatever it came through: HTTP, or the API. */
import { errorTable, isRetrysafeError } from '../errors.js'
import { keptHeaders } from '../http/headers.js'
import { statusesNotKept } from '../options.js'
import { show } from './show.js'

/** Counts the effects that are there now. It is asked before, after, and (with `sequential`) once more. */
export type Effects = () => Promise<number> | number

export interface Ending {
  readonly kind: 'first' | 'replay' | 'inProgress' | 'other'
  /** Definite answers: what must be equal among them. */
  readonly bytes: Uint8Array
  /** Of a response, the headers that a record keeps by default: a replay must have the same. */
  readonly head?: string
  /** For a message. */
  readonly text: string
  readonly raw: unknown
}

interface ResponseLike {
  readonly status: number
  readonly headers: unknown
  readonly body?: unknown
  arrayBuffer?(): Promise<ArrayBuffer>
}

/** Runs an attempt and reads how it ended; never throws. */
export async function endingOf(attempt: () => Promise<unknown>): Promise<Ending> {
  try {
    const answer = await attempt()
    if (isResponse(answer)) return await ofResponse(answer)
    if (isAnswer(answer)) return ofAnswer(answer)
    return other(answer, `something that is neither a response nor an answer: ${show(answer)}`)
  } catch (error) {
    return ofError(error)
  }
}

async function ofResponse(response: ResponseLike): Promise<Ending> {
  const { status } = response
  const replayed = headerOf(response.headers, 'idempotent-replayed') === 'true'
  const retryAfter = headerOf(response.headers, 'retry-after')
  const body = await bodyOf(response)
  const bytes = Buffer.concat([Buffer.from(`${status}\n`), body])
  const text = `${status}${replayed ? ', replayed' : ''}${retryAfter === undefined ? '' : ', Retry-After'}: ${cut(body)}`
  const head = headOf(response.headers)
  if (replayed) return { kind: 'replay', bytes, head, text, raw: response }
  if (isDefinite(status) && !isProblemOfOurs(response, body)) {
    return { kind: 'first', bytes, head, text, raw: response }
  }
  if ((status === 409 || status === 503) && retryAfter !== undefined) {
    return { kind: 'inProgress', bytes, text, raw: response }
  }
  return { kind: 'other', bytes, text, raw: text }
}

/** Whether an answer is about the intent, and not about this moment or this caller: 2xx, a redirect behind a form, a refusal that is kept. */
function isDefinite(status: number): boolean {
  return status >= 200 && status < 500 && !statusesNotKept.has(status)
}

/** Whether it was we who refused: no key, another request under the same key. */
function isProblemOfOurs({ headers }: ResponseLike, body: Buffer): boolean {
  if (!headerOf(headers, 'content-type')?.startsWith('application/problem+json')) return false
  try {
    const { code } = JSON.parse(body.toString('utf8'))
    return typeof code === 'string' && Object.hasOwn(errorTable, code)
  } catch {
    return false
  }
}

function ofAnswer(answer: { readonly value: unknown; readonly replayed: boolean }): Ending {
  const { value, replayed } = answer
  const bytes = value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value) ?? 'undefined')
  const text = `${replayed ? 'replay' : 'first answer'}: ${cut(bytes)}`
  return { kind: replayed ? 'replay' : 'first', bytes, text, raw: answer }
}

function ofError(error: unknown): Ending {
  if (!isRetrysafeError(error)) return other(error, `an error: ${show(error)}`)
  const busy = (error.status === 409 || error.status === 503) && error.retryAfterMs !== undefined
  const text = `refused with ${error.code}`
  return busy ? { kind: 'inProgress', bytes: new Uint8Array(0), text, raw: error } : other(error, text)
}

function other(raw: unknown, text: string): Ending {
  return { kind: 'other', bytes: new Uint8Array(0), text, raw }
}

function isResponse(answer: unknown): answer is ResponseLike {
  return typeof answer === 'object' && answer !== null && 'status' in answer && 'headers' in answer
}

function isAnswer(answer: unknown): answer is { value: unknown; replayed: boolean } {
  return typeof answer === 'object' && answer !== null && 'value' in answer && 'replayed' in answer
}

/** From a `Headers`, from an object as Node's `IncomingHttpHeaders`, from pairs: names count in any case. */
function headerOf(headers: unknown, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  if (typeof headers !== 'object' || headers === null) return undefined
  const pairs: readonly unknown[] =
    Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers)
  for (const pair of pairs) {
    if (Array.isArray(pair) && String(pair[0]).toLowerCase() === name) return String(pair[1])
  }
  return undefined
}

function headOf(headers: unknown): string {
  const lines = [...keptHeaders].map((name) => [name, headerOf(headers, name)] as const)
  return lines.flatMap(([name, value]) => (value === undefined ? [] : `${name}: ${value}\n`)).join('')
}

async function bodyOf(response: ResponseLike): Promise<Buffer> {
  if (typeof response.arrayBuffer === 'function') return Buffer.from(await response.arrayBuffer())
  const { body } = response
  if (body === undefined || body === null) return Buffer.alloc(0)
  if (body instanceof Uint8Array) return Buffer.from(body)
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

/** The beginning of a body, for a message. */
function cut(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8')
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
