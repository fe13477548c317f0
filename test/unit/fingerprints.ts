/** Short ways to build and to compare fingerprints. */
import { expect } from 'vitest'
import type { Fingerprint, FingerprintRequest } from '../../dist/fingerprint.js'
import { fingerprintOfRequest } from '../../dist/fingerprint.js'

export const post = (over: Partial<FingerprintRequest> = {}) =>
  fingerprintOfRequest({ method: 'POST', target: '/orders', body: undefined, ...over })

export const typed = (contentType: string, body: string | Uint8Array) =>
  post({ contentType, body: { bytes: Buffer.from(body) } })

export const json = (text: string | Uint8Array) => typed('application/json', text)

export const parsed = (value: unknown) => post({ contentType: 'application/json', body: { parsed: value } })

/** Equal in both directions, or in none: a retry may be any of the two. */
export function same(one: Fingerprint, other: Fingerprint): boolean {
  const answers = [one.matches(other.bytes()), other.matches(one.bytes())]
  expect(answers[0]).toBe(answers[1])
  return answers[0] === true
}
