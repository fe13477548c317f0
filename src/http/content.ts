/**
 * A request's body, wherever it was found: bytes, what a parser made of them, or both.
 */
import { fail } from '../errors.js'
import { readMediaType } from '../media-type.js'

/** The body of a request. */
export interface Content {
  /** As sent, without a content coding; counts for the fingerprint where it is there. */
  readonly bytes?: Uint8Array
  /** What a parser made of it; the handler gets this where it is there. */
  readonly parsed?: unknown
  /** What counts for the fingerprint where there are no bytes; default: `parsed`. */
  readonly counted?: unknown
  readonly contentType?: string
}

/**
 * What a handler is given as `body`: what a parser made of it, else the value of JSON, else bytes.
 *
 * @throws `BODY_INVALID` for a body that says it is JSON and is not
 */
export function bodyValue(content: Content | undefined): unknown {
  if (content === undefined) return undefined
  const { bytes, parsed, contentType } = content
  if (parsed !== undefined || bytes === undefined) return parsed
  return readMediaType(contentType).kind === 'json' && bytes.length > 0 ? parse(bytes) : bytes
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // Without the cause: the message of JSON.parse quotes the text.
    throw fail('BODY_INVALID', { detail: 'it is not well-formed JSON in UTF-8' })
  }
}

/** A field of a form, parsed or not; several of one name are a list. */
export function fieldOf(content: Content | undefined, name: string): unknown {
  const { bytes, parsed, contentType = '' } = content ?? {}
  if (typeof parsed === 'object' && parsed !== null) {
    return Object.hasOwn(parsed, name) ? (parsed as Record<string, unknown>)[name] : undefined
  }
  if (bytes === undefined || !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType))
    return undefined
  const values = new URLSearchParams(Buffer.from(bytes).toString('utf8')).getAll(name)
  return values.length > 1 ? values : values[0]
}
