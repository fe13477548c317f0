/**
 * Events: what happened to an intent, for logs, counters and alerts. No event carries a key, a scope, a body or an outcome: a
 * record is named by a digest that is the same in every process.
 */
import type { ErrorCode, RetrysafeError } from './errors.js'

/** What most events tell. */
export interface IntentEvent {
  /** 16 hex digits that name the record (SHA-256 over key and scope). */
  readonly record: string
  readonly operation: string | undefined
  readonly mode: 'transaction' | 'lease'
  /** Which claim of the record; absent where nothing was claimed. */
  readonly generation?: number
  /** Claims so far, this one included. */
  readonly attempt?: number
}

/** What each event tells its listeners; the keys are the names. {@link IntentEvent} where it is about one intent. */
export interface EventMap {
  /** The claim is ours; the work runs. */
  claimed: IntentEvent
  /** A stored outcome was given again. */
  replayed: IntentEvent
  /** Refused because another owner is alive. */
  held: IntentEvent
  /** Refused because the key belongs to another request. */
  mismatched: IntentEvent
  /** The claim of an owner that is gone was taken over. */
  takenOver: IntentEvent
  /** The claim was taken from a running attempt, or could not be renewed in time. */
  leaseLost: IntentEvent
  /** The outcome is durable. */
  completed: IntentEvent
  /** The work failed; the claim is free again. */
  released: IntentEvent
  /** Nobody can tell whether the work took effect; an operator has to look. */
  unknown: IntentEvent
  /** An intent given up on was sent again. */
  dead: IntentEvent
  /** The sweeper removed records that were past retention. */
  swept: { readonly removed: number }
  /** A handler in transaction mode was kept without having used `tx`: its writes, if any, are not covered (rule 24). */
  txUnused: IntentEvent
  /** This process's clock and the store's are further apart than retention tolerates (rule 5). */
  clockGap: { readonly gapMs: number }
  /**
   * A caller was answered with an error of ours from 500 up; the document says only its code. `error` has the rest, and in `cause` what the
   * driver or the work threw, for your log. `record` is absent where it failed before there was an intent.
   */
  failed: {
    readonly record?: string
    readonly operation: string | undefined
    readonly code: ErrorCode
    readonly error: RetrysafeError
  }
  /** The store failed; what the caller was told depends on `onStoreDown`. */
  storeError: { readonly during: string; readonly error: unknown }
}

/** Names of events, for `safe.on(name, listener)`. */
export type EventName = keyof EventMap

export interface Events {
  /** Calls `listener` at each event of that name; the returned function removes it. A listener that throws changes nothing. */
  on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void
  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void
  /** Whether anybody listens to that name. */
  isHeard(name: EventName): boolean
}

/** The names, for a check at run time: a misspelt event is an error, not silence. */
export const eventNames: readonly EventName[] = [
  'claimed',
  'replayed',
  'held',
  'mismatched',
  'takenOver',
  'leaseLost',
  'completed',
  'released',
  'unknown',
  'dead',
  'swept',
  'txUnused',
  'clockGap',
  'failed',
  'storeError',
]

export function createEvents(): Events {
  const listeners = new Map<EventName, Set<(event: never) => void>>()

  function on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void {
    const own = listeners.get(name) ?? new Set()
    listeners.set(name, own.add(listener))
    return () => own.delete(listener)
  }

  function emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of listeners.get(name) ?? []) {
      // An observer must not decide over a payment, nor end the process: its failure is its own, also when it comes later.
      try {
        const later = (listener as (event: EventMap[Name]) => unknown)(event)
        if (later instanceof Promise) later.catch(() => undefined)
      } catch {}
    }
  }

  return { on, emit, isHeard: (name) => (listeners.get(name)?.size ?? 0) > 0 }
}
