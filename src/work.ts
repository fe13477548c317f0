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
    const over = (end: End<Value>) => {
      cancel()
      resolve(end)
    }
    try {
      Promise.resolve(work()).then(
        (value) => over({ value }),
        (error: unknown) => over({ error }),
      )
    } catch (error) {
      over({ error })
    }
  })
}

/** Judges an end by the call's format and policy. */
export function judge<Value>({ format }: Call<Value>, end: End<Value>, noReturn: boolean): Ended {
  return 'error' in end ? format.ofError(end.error, noReturn) : format.ofValue(end.value, noReturn)
}

/** An abort signal that is made when somebody looks at it: most work never does, and making one costs as much as a claim's bookkeeping. */
export interface Control {
  readonly signal: AbortSignal
  aborted(): boolean
  /** Fires the signal; only the first reason counts. */
  abort(reason: Error): void
}

export function createControl(): Control {
  let controller: AbortController | undefined
  let reason: Error | undefined

  return {
    get signal() {
      controller ??= new AbortController()
      if (reason !== undefined) controller.abort(reason)
      return controller.signal
    },
    aborted: () => reason !== undefined,
    abort: (why) => {
      reason ??= why
      controller?.abort(reason)
    },
  }
}

/** What every attempt is given, with what its mode adds, and whether it passed the point of no return. */
export function attemptFor<Tools extends object>(
  { identity, scope }: ResolvedIntent,
  granted: Granted,
  control: { readonly signal: AbortSignal },
  tools: Tools,
  pin?: () => void,
): { readonly attempt: Attempt & Tools; noReturn(): boolean } {
  let noReturn = false
  // Without a spread: beside a getter it costs eight times the rest.
  const attempt: Attempt = {
    key: identity.key,
    scope,
    attempt: granted.attempts,
    generation: granted.generation,
    get signal() {
      return control.signal
    },
    keepFailure: () => {
      if (!noReturn) pin?.()
      noReturn = true
    },
  }
  return { attempt: Object.assign(attempt, tools), noReturn: () => noReturn }
}
