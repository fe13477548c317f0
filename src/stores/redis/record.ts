/** What a record is called and how it is read; one that cannot be read is an error, never "absent" (rule 13). */
import { fail } from '../../errors.js'
import {
  clockToleranceMs,
  type Identity,
  type RecordState,
  recordName,
  type SeenRecord,
} from '../../store.js'

/**
 * The key of a record. In braces, so that whatever is ever kept beside it lies in the same slot of a cluster. What a slot is computed from ends at the
 * first `}`, and is never empty, whatever braces the caller's key holds: it begins with the length.
 */
export function nameOf(prefix: string, identity: Identity): string {
  return `${prefix}{${recordName(identity)}}`
}

/** The inverse of {@link nameOf}. */
export function identityOf(prefix: string, name: string): Identity {
  const inside = name.slice(prefix.length + 1, -1)
  const colon = inside.indexOf(':')
  const keyEnd = colon + 1 + Number(inside.slice(0, colon))
  return { key: inside.slice(colon + 1, keyEnd), scope: inside.slice(keyEnd) }
}

interface RecordWords {
  readonly state: RecordState
  readonly generation: number
  readonly attempts: number
  readonly endsMs: number
  readonly owner: string
  readonly fingerprint: Uint8Array
  readonly steps: string
  readonly outcome: string
}

const none = '-'
const states: readonly string[] = [
  'running',
  'released',
  'done',
  'unknown',
  'dead',
] satisfies readonly RecordState[]

function corrupt(detail: string) {
  return fail('RECORD_CORRUPT', { detail })
}

/** The words of a record as scripts.ts lists them. */
export function wordsOf(value: string): RecordWords {
  const [version, state = '', generation, attempts, endsMs, owner, mark, fingerprint, steps, outcome, more] =
    value.split(' ')
  if (version !== '1') throw corrupt('it is not of a version that is known here')
  if (!owner || !mark || !fingerprint || !steps || outcome === undefined || more !== undefined)
    throw corrupt('it has not the words of a record')
  if (!states.includes(state)) throw corrupt('its state is not known to this version')
  return {
    state: state as RecordState,
    generation: integer(generation),
    attempts: integer(attempts),
    endsMs: integer(endsMs),
    owner,
    fingerprint: Buffer.from(fingerprint, 'base64'),
    steps,
    outcome,
  }
}

function integer(text: string | undefined): number {
  const value = Number(text)
  if (!text || !Number.isSafeInteger(value)) throw corrupt('a number of it is no safe integer')
  return value
}

/** The record as a look-up saw it when the server's clock showed `storeNowMs`; retention is never judged by an instant after `latestMs` (rule 5). */
export function seenRecord(value: string, storeNowMs: number, latestMs: number): SeenRecord {
  const words = wordsOf(value)
  const { state, owner, generation, attempts, fingerprint, steps } = words
  if (state === 'done' && words.outcome === none) throw corrupt('it is done without an outcome')
  const judgeMs = state === 'running' ? storeNowMs : Math.min(storeNowMs, latestMs)
  return {
    state,
    owner,
    generation,
    attempts,
    fingerprint,
    ...(state === 'done' && { outcome: Buffer.from(words.outcome, 'base64') }),
    hasSteps: steps !== none,
    live: words.endsMs > judgeMs,
    leftMs: words.endsMs - judgeMs,
    storeNowMs,
  }
}

/** Bytes as a word. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
}

/** The latest instant, in ms since 1970, that retention is judged by: it never passes before the caller's clock agrees (rule 5). */
export function latestMs(callerNowMs: number): number {
  return Math.floor(callerNowMs + clockToleranceMs)
}

/** A duration as Redis takes it, rounded up so that nothing ends early. */
export function wholeMs(durationMs: number): string {
  return String(Math.ceil(durationMs))
}
