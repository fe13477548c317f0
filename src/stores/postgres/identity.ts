/** Numbers and limits that are made in the client. */
import { hash } from 'node:crypto'
import { clockToleranceMs, type Identity } from '../../store.js'

/** Hexadecimal digits of a lock: 52 bits, which a number holds; as a bigint it would cost as much as the digest. */
const lockDigits = 13

/**
 * The advisory lock of an identity: 52 bits of SHA-256 over schema, key and scope, each with its length in front, so that no two
 * identities share their bytes (rule 14). Two that collide are only held a moment too long; the primary key decides.
 */
export function lockNumber(schema: string, { key, scope }: Identity): string {
  let text = ''
  for (const part of [schema, key, scope]) text += `${Buffer.byteLength(part)}:${part}`
  return String(Number.parseInt(hash('sha256', text, 'hex').slice(0, lockDigits), 16))
}

/** The latest instant, in ms since 1970, that retention is judged by: it never passes before the caller's clock agrees (rule 5). */
export function latestMs(callerNowMs: number): string {
  return String(Math.floor(callerNowMs + clockToleranceMs))
}

/** A duration for an SQL bigint, rounded up so that nothing ends early. */
export function wholeMs(durationMs: number): string {
  return String(Math.ceil(durationMs))
}

/** A server timeout: 0 would switch it off, and it is an int32 there. */
export function timeoutSetting(timeoutMs: number): string {
  return String(Math.min(Math.max(1, Math.ceil(timeoutMs)), 2 ** 31 - 1))
}
