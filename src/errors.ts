/**
 * Every error this library raises by itself: one table of code, status, what happened and what to do next.
 *
 * Codes are API: they are stable, HTTP adapters print them in `problem+json`, and `docs/errors.md` is kept equal to this
 * table by a test. Messages never contain a key, a scope, a body or a secret.
 */

interface ErrorRow {
  /** HTTP status an adapter answers with. */
  readonly status: number
  /** What happened, in a few words; the `title` of the problem document. */
  readonly title: string
  /** What the caller should do next. */
  readonly advice: string
  /** Whether the same request may be sent again, unchanged, after `retryAfterMs`. */
  readonly retryable: boolean
}

/** The table. A row is added here, in `docs/errors.md`, and nowhere else. */
export const errorTable = {
  KEY_REQUIRED: {
    status: 400,
    title: 'An idempotency key is required',
    advice:
      'Draw one key per intent (a UUID, say), send it in the Idempotency-Key header, and send the same key on every retry.',
    retryable: false,
  },
  KEY_INVALID: {
    status: 400,
    title: 'The idempotency key is malformed',
    advice:
      'Send one Idempotency-Key header of 1 to 255 visible ASCII characters, bare or as a quoted string, without a bare comma.',
    retryable: false,
  },
  BODY_INVALID: {
    status: 400,
    title: 'The request body cannot be read by value',
    advice: 'Send well-formed JSON, nested at most 512 levels deep, or another content type.',
    retryable: false,
  },
  REPLAY_REFUSED: {
    status: 403,
    title: 'The stored reply may not be shown to this caller',
    advice:
      'The rights of the caller have changed since the first answer. Ask for the current state instead.',
    retryable: false,
  },
  IN_PROGRESS: {
    status: 409,
    title: 'The first attempt may still be running',
    advice: 'Wait for Retry-After, then send the same request with the same key again.',
    retryable: true,
  },
  NOT_REPLAYABLE: {
    status: 409,
    title: 'The work is done, but its reply was not stored',
    advice: 'Do not send the request again: it took effect. Read the current state of the resource instead.',
    retryable: false,
  },
  DEAD_LETTER: {
    status: 409,
    title: 'This intent was given up after too many attempts',
    advice: 'Ask the operator of the service to look at it; a retry does not run it again.',
    retryable: false,
  },
  BODY_TOO_LARGE: {
    status: 413,
    title: 'The request body is too large',
    advice: 'Send a smaller body, or have the service raise maxBodyBytes.',
    retryable: false,
  },
  KEY_REUSED: {
    status: 422,
    title: 'This key was already used for a different request',
    advice: 'Draw a new key for a new intent; send a retry with exactly the first request.',
    retryable: false,
  },
  OUTCOME_UNKNOWN: {
    status: 500,
    title: 'Nobody can tell whether the work took effect',
    advice:
      'Do not send the request again. The operator of the service resolves it after looking at its effects.',
    retryable: false,
  },
  REPLY_TOO_LARGE: {
    status: 500,
    title: 'The reply is too large to be held back until the commit',
    advice:
      'Nothing was stored. Use mode lease for this route, or answer with a link and stream from a route that only reads.',
    retryable: false,
  },
  SCOPE_INVALID: {
    status: 500,
    title: 'The scope of the key is missing or malformed',
    advice:
      'Have `scope` return the tenant or user the key belongs to: a string of 1 to 255 characters without control characters.',
    retryable: false,
  },
  TRANSACTION_ABORTED: {
    status: 500,
    title: 'The transaction of the work did not commit',
    advice:
      'Nothing was stored for this key. Do not end the transaction inside the work and do not swallow a failed statement: what the work committed by itself cannot be undone.',
    retryable: false,
  },
  ATTEMPT_SETTLED: {
    status: 500,
    title: 'The attempt is over; its tools can no longer be used',
    advice: 'Await everything the work starts with tx or commit before the work returns.',
    retryable: false,
  },
  OPTION_INVALID: {
    status: 500,
    title: 'An option is missing or wrong',
    advice: 'Correct the option that the message names.',
    retryable: false,
  },
  LEASE_LOST: {
    status: 503,
    title: 'This attempt lost its claim before it was done',
    advice: 'Send the same request with the same key again: another attempt may have finished it.',
    retryable: true,
  },
  RECORD_CORRUPT: {
    status: 503,
    title: 'The stored record cannot be read',
    advice:
      'Do not draw a new key: the work may be done. The operator of the service restores the record or upgrades the reader.',
    retryable: false,
  },
  STORE_UNAVAILABLE: {
    status: 503,
    title: 'It cannot be told right now whether the work was done',
    advice: 'Wait for Retry-After, then send the same request with the same key again.',
    retryable: true,
  },
  TRANSACTION_CONFLICT: {
    status: 503,
    title: 'The transaction met a rival and was rolled back',
    advice: 'Wait for Retry-After, then send the same request with the same key again: nothing was written.',
    retryable: true,
  },
  WORK_TIMEOUT: {
    status: 503,
    title: 'The work took longer than workTimeoutMs',
    advice: 'Wait for Retry-After, then send the same request with the same key again.',
    retryable: true,
  },
} as const satisfies Record<string, ErrorRow>

/** The stable code of an error; see `docs/errors.md`. */
export type ErrorCode = keyof typeof errorTable

/** What a caller of {@link fail} may add to a row of the table. */
export interface ErrorDetail {
  /** One more sentence that names the option or the circumstance; never a key, a body or a secret. */
  readonly detail?: string
  /** How long to wait before the same request is sent again, in ms. */
  readonly retryAfterMs?: number
  /** Status of the first answer, where that answer itself was not kept (`NOT_REPLAYABLE`). */
  readonly originalStatus?: number
  readonly cause?: unknown
}

// A brand instead of `instanceof`: two copies of the package in one process still know each other's errors.
const brand = Symbol.for('retrysafe.error')

/** An error of this library. Recognise one with {@link isRetrysafeError}, not with `instanceof`. */
export class RetrysafeError extends Error {
  readonly code: ErrorCode
  /** The HTTP status that belongs to the code. */
  readonly status: number
  /** Whether the same request may be sent again, unchanged. */
  readonly retryable: boolean
  /** How long to wait before the next try, in ms; present where waiting makes sense. */
  readonly retryAfterMs?: number
  /** What to do next. */
  readonly advice: string
  /** Status of the first answer, where only the answer itself is gone (`NOT_REPLAYABLE`). */
  readonly originalStatus?: number

  constructor(code: ErrorCode, more: ErrorDetail = {}) {
    const row: ErrorRow = errorTable[code]
    const detail = more.detail === undefined ? '' : ` (${more.detail})`
    super(
      `${row.title}${detail}. ${row.advice}`,
      more.cause === undefined ? undefined : { cause: more.cause },
    )
    this.name = 'RetrysafeError'
    this.code = code
    this.status = row.status
    this.retryable = row.retryable
    this.advice = row.advice
    if (more.retryAfterMs !== undefined) this.retryAfterMs = more.retryAfterMs
    if (more.originalStatus !== undefined) this.originalStatus = more.originalStatus
    Object.defineProperty(this, brand, { value: true })
  }
}

/** Builds an error of the table; a retryable one without a wait of its own says one second. */
export function fail(code: ErrorCode, more: ErrorDetail = {}): RetrysafeError {
  if (!errorTable[code].retryable || more.retryAfterMs !== undefined) return new RetrysafeError(code, more)
  return new RetrysafeError(code, { ...more, retryAfterMs: 1000 })
}

/**
 * Whether an error was raised by this library, by any copy of it in the process.
 *
 * @example
 * ```ts
 * try { await safe.transaction(intent, work) } catch (error) {
 *   if (isRetrysafeError(error) && error.code === 'IN_PROGRESS') return later(error.retryAfterMs)
 *   throw error
 * }
 * ```
 */
export function isRetrysafeError(error: unknown): error is RetrysafeError {
  try {
    return typeof error === 'object' && error !== null && (error as { [brand]?: unknown })[brand] === true
  } catch {
    // Something may be thrown that throws when it is looked at.
    return false
  }
}
