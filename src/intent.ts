/**
 * An intent as the API takes it, and as the runners need it.
 */
import type { Call, Format } from './attempt.js'
import { fail } from './errors.js'
import { type Fingerprint, fingerprintOfBytes, fingerprintOfValue } from './fingerprint.js'
import { checkKey, checkScope, recordScope } from './key.js'
import type { Policy } from './options.js'

/** One thing a caller wants done once. */
export interface Intent {
  /** Who the key belongs to: a tenant or a user. Never empty: anonymous callers are not pooled by accident (rule 14). */
  readonly scope: string
  /** The caller's key: 1 to 255 characters, drawn once per intent and sent with every retry. */
  readonly key: string
  /** Joins the scope, so that one key may be used once per operation. 1 to 64 characters. */
  readonly operation?: string
  /** What must be equal between a call and its retry; compared by value as JSON is. */
  readonly input?: unknown
  /** Instead of `input`: a text or bytes that must be equal. */
  readonly fingerprint?: string | Uint8Array
  /** Whether this has been sent before, as far as the caller knows: a look then goes before the claim. For speed only. */
  readonly retry?: boolean
}

const members: ReadonlySet<string> = new Set(['scope', 'key', 'operation', 'input', 'fingerprint', 'retry'])

/** Checks an intent; throws `KEY_INVALID`, `SCOPE_INVALID`, `OPTION_INVALID` or `BODY_INVALID` before anything is asked of a store. */
export function resolveIntent<Value>(intent: Intent, policy: Policy, format: Format<Value>): Call<Value> {
  if (typeof intent !== 'object' || intent === null) {
    throw fail('OPTION_INVALID', { detail: 'the intent must be an object { scope, key }' })
  }
  for (const name of Object.keys(intent)) {
    if (!members.has(name))
      throw fail('OPTION_INVALID', { detail: `an intent has no member ${JSON.stringify(name)}` })
  }
  const { operation } = intent
  const scope = checkScope(intent.scope)
  const identity = { key: checkKey(intent.key), scope: recordScope(scope, operation) }
  return {
    identity,
    scope,
    operation,
    fingerprint: fingerprintOf(intent),
    policy,
    isRetry: intent.retry === true,
    context: intent,
    format,
  }
}

function fingerprintOf({ input, fingerprint }: Intent): Fingerprint {
  if (fingerprint === undefined) return fingerprintOfValue(input)
  if (input !== undefined) {
    throw fail('OPTION_INVALID', { detail: 'give input or fingerprint, not both' })
  }
  if (typeof fingerprint === 'string') return fingerprintOfBytes(Buffer.from(fingerprint, 'utf8'))
  if (fingerprint instanceof Uint8Array) return fingerprintOfBytes(fingerprint)
  throw fail('OPTION_INVALID', { detail: 'fingerprint must be a string or bytes' })
}
