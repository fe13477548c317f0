/**
 * Runs the user's work: what it is given, how long it may take, and how its end is judged. The same for every mode.
 */
import type { Attempt, Call, Ended, ResolvedIntent } from './attempt.js'
import { type Clock, longestTimerMs } from './clock.js'
import type { Granted } from './store.js'

/** How the work ended. */
export type End<Value> = { readonly value: Value } | { readonly error: unknown }

/** Runs the work; what it throws is a value here. */
export async function endOf<Value>(work: () => Value | Promise<Value>): Promise<End<Value>> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error }
  }
}

/** The same, but undefined once `limitMs` is over; the work itself goes on, with nobody to answer to. */
export function endWithin<Value>(
  clock: Clock,
  limitMs: number,
  work: () => Value | Promise<Value>,
): Promise<End<Value> | undefined> {
  return new Promise((resolve) => {
    const late = () => resolve(undefined)
    const cancel = clock.schedule(Math.min(limitMs, longestTimerMs), late, 'background')
    void endOf(work).then((end) => {
      cancel()
      resolve(end)
    })
  })
}

/** Judges an end by the call's format and policy. */
export function judge<Value>({ format }: Call<Value>, end: End<Value>, noReturn: boolean): Ended {
  return 'error' in end ? format.ofError(end.error, noReturn) : format.ofValue(end.value, noReturn)
}

/** What every attempt is given, and whether it passed the point of no return. */
export function attemptFor(
  { identity, scope }: ResolvedIntent,
  granted: Granted,
  signal: AbortSignal,
  pin?: () => void,
): { readonly base: Attempt; noReturn(): boolean } {
  let noReturn = false
  const base: Attempt = {
    key: identity.key,
    scope,
    attempt: granted.attempts,
    generation: granted.generation,
    signal,
    keepFailure: () => {
      if (!noReturn) pin?.()
      noReturn = true
    },
  }
  return { base, noReturn: () => noReturn }
}
