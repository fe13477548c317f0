/**
 * Assertions of the suites: they say what was looked at, what was expected and what was found.
 */
import { AssertionError } from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import { isRetrysafeError } from '../errors.js'
import { show } from './show.js'

/** Fails unless both are deeply and strictly equal; bytes are compared as bytes, whatever class holds them. */
export function equal<Value>(what: string, actual: Value, expected: Value): void {
  if (isDeepStrictEqual(plain(actual), plain(expected))) return
  const message = `${what}: expected ${show(expected)}, found ${show(actual)}`
  throw new AssertionError({ message, actual, expected, operator: 'deepStrictEqual', stackStartFn: equal })
}

/** Fails unless the condition holds. */
export function holds(what: string, condition: boolean): asserts condition {
  if (condition) return
  throw new AssertionError({ message: `${what}: it does not hold`, stackStartFn: holds })
}

/** The value, which must be there. */
export function present<Value>(what: string, value: Value | undefined): Value {
  if (value !== undefined) return value
  throw new AssertionError({ message: `${what}: it is missing`, stackStartFn: present })
}

/** The error that a promise rejects with; fails when it resolves. */
export async function rejection(what: string, promise: Promise<unknown>): Promise<unknown> {
  const end = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('error' in end) return end.error
  throw new AssertionError({
    message: `${what}: expected a rejection, found ${show(end.value)}`,
    stackStartFn: rejection,
  })
}

/** Fails unless the promise rejects with an error of this library under that code. */
export async function refuses(what: string, code: string, promise: Promise<unknown>): Promise<void> {
  const error = await rejection(what, promise)
  equal(what, codeOf(error), code)
}

/** The code of an error of this library; of any other error its text. */
export function codeOf(error: unknown): string {
  return isRetrysafeError(error) ? error.code : String(error)
}

function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? Uint8Array.from(value) : value
}
