/**
 * Whose error it is. A handler, a `scope`, a `keep` or a `mayReplay` may use this library for something else, and what that refuses is
 * no answer to the request at hand: a nested key that is malformed would tell the client that its own is. So only what we raise
 * about this request becomes a problem document; what the user's code throws goes to the framework, whatever its brand.
 */
import { type ErrorCode, type ErrorDetail, fail, type RetrysafeError } from '../errors.js'
import type { Policy } from '../options.js'

const ours = new WeakSet<object>()

/** {@link fail}, for what is raised about the answer of a handler while its own code runs. */
export function failOfOurs(code: ErrorCode, more: ErrorDetail = {}): RetrysafeError {
  const error = fail(code, more)
  ours.add(error)
  return error
}

/** Takes an error for ours that a tool of the attempt has thrown at the handler, should it come back out of it. */
export function claimError(error: unknown): void {
  if (typeof error === 'object' && error !== null) ours.add(error)
}

/** Whether an error is ours to answer, although it comes out of a handler. */
export function isOfOurs(error: unknown): boolean {
  return typeof error === 'object' && error !== null && ours.has(error)
}

export interface UserCode {
  /** The same function; what it throws, or rejects with, is remembered. */
  of<Values extends unknown[], Result>(call: (...values: Values) => Result): (...values: Values) => Result
  /** The policy with its callbacks remembered. */
  policyOf(policy: Policy): Policy
  threw(error: unknown): boolean
}

/** Watches the user's code for the time of one request. */
export function createUserCode(): UserCode {
  const thrown = new Set<unknown>()

  function note(error: unknown): never {
    thrown.add(error)
    throw error
  }

  function of<Values extends unknown[], Result>(call: (...values: Values) => Result) {
    return (...values: Values): Result => {
      try {
        const result = call(...values)
        return result instanceof Promise ? (result.catch(note) as Result) : result
      } catch (error) {
        return note(error)
      }
    }
  }

  function policyOf(policy: Policy): Policy {
    const { keep, mayReplay } = policy
    if (typeof keep !== 'function' && mayReplay === undefined) return policy
    return {
      ...policy,
      ...(typeof keep === 'function' && { keep: of(keep) }),
      ...(mayReplay !== undefined && { mayReplay: of(mayReplay) }),
    }
  }

  function threw(error: unknown): boolean {
    return !isOfOurs(error) && thrown.has(error)
  }

  return { of, policyOf, threw }
}
