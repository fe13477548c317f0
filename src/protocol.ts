/**
 * The protocol: what a caller does on what it saw, as pure functions over every state a record can be in.
 *
 * Nothing here asks a clock, a store or chance. The store says what it saw and whether it lives (rule 5), the caller says what it wants,
 * and `decide` answers; the runners (`transaction.ts`, `lease-run.ts`, `within.ts`) carry the answer out. A state that is added to the
 * store's list fails the build here until it is decided.
 */
import type { SeenRecord } from './store.js'

/** What a caller brings to a look-up. */
export interface Ask {
  /** The token drawn before the claim was sent (rule 2). */
  readonly owner: string
  /** Whether a stored fingerprint means the caller's intent. */
  matches(stored: Uint8Array): boolean
  /** Whether the caller holds the lock of the identity; always true where the store has no lock besides the record. */
  readonly granted: boolean
  /** What a running record past its lease means: the work may run again, or nobody can tell (`unknown`). */
  readonly onOwnerLost: 'rerun' | 'unknown'
}

export type Decision =
  /** No record stands: the claim is the caller's to take. */
  | { readonly do: 'run' }
  /** The record that was seen may be replaced, by a compare-and-swap on exactly it. */
  | { readonly do: 'takeOver'; readonly seen: SeenRecord }
  /** The claim is the caller's own; only its answer was lost. */
  | { readonly do: 'own'; readonly seen: SeenRecord }
  /** The owner is gone and nobody can tell what it did: the record becomes `unknown`. */
  | { readonly do: 'abandon'; readonly seen: SeenRecord }
  /** The outcome stands. */
  | { readonly do: 'replay'; readonly seen: SeenRecord }
  | { readonly do: 'refuse'; readonly because: Refusal; readonly seen: SeenRecord | undefined }

export type Refusal = 'mismatched' | 'held' | 'unknown' | 'dead'

/**
 * Decides what a caller does. The look-up speaks before the lock does: what is done is replayed and a mismatch is refused
 * whatever the lock said (rule 1), and a mismatch is told before `held` wherever the running fingerprint can be seen (rule 16).
 */
export function decide(seen: SeenRecord | undefined, ask: Ask): Decision {
  if (seen === undefined) return ask.granted ? { do: 'run' } : refuse('held', seen)
  switch (seen.state) {
    case 'running':
      return decideRunning(seen, ask)
    case 'released':
      return decideReleased(seen, ask)
    case 'done':
      return decideDone(seen, ask)
    case 'unknown':
      return refuse(ask.matches(seen.fingerprint) ? 'unknown' : 'mismatched', seen)
    case 'dead':
      return refuse(ask.matches(seen.fingerprint) ? 'dead' : 'mismatched', seen)
    default:
      return seen.state satisfies never
  }
}

function decideRunning(seen: SeenRecord, ask: Ask): Decision {
  if (!ask.matches(seen.fingerprint)) return refuse('mismatched', seen)
  if (seen.live) return seen.owner === ask.owner ? { do: 'own', seen } : refuse('held', seen)
  if (ask.onOwnerLost === 'unknown') return { do: 'abandon', seen }
  return replace(seen, ask)
}

function decideReleased(seen: SeenRecord, ask: Ask): Decision {
  // Without steps nothing of the earlier try is left to be mixed up with: any fingerprint may run.
  if (!seen.hasSteps) return replace(seen, ask)
  // Work that was begun is never forgotten by retention alone: what its steps did can no longer be told (state table).
  if (!ask.matches(seen.fingerprint)) return refuse('mismatched', seen)
  return seen.live ? replace(seen, ask) : { do: 'abandon', seen }
}

function decideDone(seen: SeenRecord, ask: Ask): Decision {
  // Past retention the key is free again, for any fingerprint.
  if (!seen.live) return replace(seen, ask)
  return ask.matches(seen.fingerprint) ? { do: 'replay', seen } : refuse('mismatched', seen)
}

function replace(seen: SeenRecord, ask: Ask): Decision {
  return ask.granted ? { do: 'takeOver', seen } : refuse('held', seen)
}

function refuse(because: Refusal, seen: SeenRecord | undefined): Decision {
  return { do: 'refuse', because, seen }
}

/** How the work ended, in the words of rule 11. */
export interface Ending {
  /** It threw (or rejected) instead of returning. */
  readonly threw: boolean
  /** Policy keeps it: `keep` said so, or the point of no return was passed. */
  readonly kept: boolean
  /** Its answer is a failure whose writes must not stand: a throw, a 5xx, or any refusal after the point of no return. */
  readonly failure: boolean
}

export type Settlement =
  /** Store the outcome; the work's writes stand. */
  | 'save'
  /** Store the outcome alone: the work's writes are rolled back to the savepoint before them. */
  | 'saveAlone'
  /** Store nothing: writes are rolled back, the key is free (transaction) or the claim released (lease). */
  | 'forget'

/** Decides what is stored of an ending. In lease mode there are no writes of the work to undo, so alone or not is the same. */
export function settle(ending: Ending): Settlement {
  if (!ending.kept) return 'forget'
  return ending.threw || ending.failure ? 'saveAlone' : 'save'
}

/** Which attempt a claim is that follows what was seen: past retention, the count starts anew with the intent. */
export function attemptAfter(seen: SeenRecord | undefined): number {
  return seen === undefined || seen.state === 'done' ? 1 : seen.attempts + 1
}

/** `Retry-After` for a held intent: what is left of the lease, from 1 s, so that nobody hammers, to 5 s, so that nobody sleeps long. */
export function retryAfterHeldMs(leftMs: number | undefined): number {
  return Math.min(5000, Math.max(1000, leftMs ?? 1000))
}
