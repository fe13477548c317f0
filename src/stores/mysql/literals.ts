/**
 * Values written into the text of a statement. Bytes and texts go as hexadecimal literals, which no `sql_mode`, character set or option of a client reads
 * in another way (a backslash ends a string under one mode and not under the other), and numbers as digits.
 */
import { fail } from '../../errors.js'
import { clockToleranceMs, type Identity } from '../../store.js'

/** Bytes; a literal of twice their length. */
export function bytes(value: Uint8Array): string {
  return `x'${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}'`
}

/** The bytes of a text in UTF-8. */
export function text(value: string): string {
  return `x'${Buffer.from(value, 'utf8').toString('hex')}'`
}

/** An owner token, a UUID, as the 16 bytes it stands for. */
export function token(owner: string): string {
  const digits = owner.replaceAll('-', '').toLowerCase()
  if (!/^[0-9a-f]{32}$/.test(digits))
    throw fail('OPTION_INVALID', { detail: 'an owner token must be a UUID' })
  return `x'${digits}'`
}

export function integer(value: number): string {
  if (!Number.isSafeInteger(value)) throw fail('OPTION_INVALID', { detail: 'a number is no safe integer' })
  return String(value)
}

/** A duration in µs, rounded up so that nothing ends early. */
export function micros(durationMs: number): string {
  return integer(Math.ceil(durationMs) * 1000)
}

/** The latest instant, in µs since 1970, that retention is judged by: it never passes before the caller's clock agrees (rule 5). */
export function latestMicros(callerNowMs: number): string {
  return integer(Math.floor(callerNowMs + clockToleranceMs) * 1000)
}

/** The condition that names one record. */
export function is({ key, scope }: Identity): string {
  return `\`key\` = ${text(key)} and scope = ${text(scope)}`
}
