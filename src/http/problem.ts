/**
 * Errors as replies: `application/problem+json` (RFC 9457) with a link to the page that explains the code, as section 2.7 of the
 * IETF draft asks for.
 */
import { type ErrorCode, errorTable, type RetrysafeError } from '../errors.js'
import type { StoredReply } from '../outcome.js'
import { type ReplyHeaders, reply } from './reply.js'

/** Where `policy(safe)` is mounted unless `problemBase` says otherwise (RFC 8615). */
export const defaultProblemBase = '/.well-known/retrysafe'

/** The address of the page about a code; also the `type` of its problem document. */
export function problemType(base: string, code: ErrorCode): string {
  return `${base}/${code}`
}

/** Errors whose advice is for whoever wrote the route: a caller can do nothing with it, and it tells how the service is built. */
const forDevelopers: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SCOPE_INVALID',
  'OPTION_INVALID',
  'TRANSACTION_ABORTED',
  'ATTEMPT_SETTLED',
  'REPLY_TOO_LARGE',
])

/** What a caller is told to do. */
export function adviceFor(code: ErrorCode): string {
  return forDevelopers.has(code)
    ? 'The fault is in the service; its operator finds it under this code.'
    : errorTable[code].advice
}

/** From 500 up the circumstance (which option, which schema) stays in the service: the event `failed` has it. */
function detailOf({ code, status, message }: RetrysafeError): string {
  return status < 500 ? message : `${errorTable[code].title}. ${adviceFor(code)}`
}

/** The reply for an error of ours. It holds no key, no body and no secret, whatever the error. */
export function problemReply(error: RetrysafeError, base: string): StoredReply {
  const type = problemType(base, error.code)
  const { code, status, originalStatus, retryAfterMs } = error
  const document = {
    type,
    title: errorTable[code].title,
    status,
    detail: detailOf(error),
    code,
    ...(originalStatus !== undefined && { originalStatus }),
  }
  return reply(status, document, {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    link: `<${type}>; rel="describedby"`,
    ...retryAfter(retryAfterMs),
  })
}

/** `Retry-After` in whole seconds, rounded up: a caller that comes back a moment early is refused once more. */
function retryAfter(retryAfterMs: number | undefined): ReplyHeaders {
  if (retryAfterMs === undefined) return {}
  return { 'retry-after': Math.max(1, Math.ceil(retryAfterMs / 1000)) }
}

/**
 * A kept error of the work (`keepFailure()`, `keep: 'all'`) as a reply: its status, and its message only where the error itself says
 * that it may be shown (`expose`, as `http-errors` has it).
 */
export function failureReply(error: unknown): StoredReply {
  const named = [read(error, 'status'), read(error, 'statusCode')].find(
    (one) => Number.isInteger(one) && Number(one) >= 400 && Number(one) < 600,
  )
  const message = read(error, 'expose') === true ? read(error, 'message') : undefined
  const document = {
    type: 'about:blank',
    title: 'The request failed, and the failure is final',
    status: Number(named ?? 500),
    ...(typeof message === 'string' && { detail: message }),
  }
  return reply(document.status, document, { 'content-type': 'application/problem+json' })
}

/** Anything may be thrown, and past the point of no return a getter that throws must not cost the record: the work would run again. */
function read(error: unknown, member: string): unknown {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) return undefined
  try {
    return Reflect.get(error, member)
  } catch {
    return undefined
  }
}

/** The reply in the place of an answer that its handler began and broke off. Nothing of it is kept. */
export function brokenReply(): StoredReply {
  const document = {
    type: 'about:blank',
    title: 'The request failed while it was answered',
    status: 500,
  }
  return reply(500, document, { 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
}
