/**
 * Attempts of one intent in one process share one claim and one bounded wait (rule 6).
 *
 * Five hundred equal requests on one server ask the store once: the first leads, the others follow. A follower is given a stored
 * outcome only; when the leader ends without one, the followers are woken and one of them leads next. The entry lives exactly as long as its
 * leader is under way, so a failure leaves nothing behind.
 */
import type { Clock } from './clock.js'
import { fail, isRetrysafeError } from './errors.js'
import type { Fingerprint } from './fingerprint.js'
import { retryAfterHeldMs } from './protocol.js'

/** An outcome that is durable, with what its record says. */
export interface Stored {
  readonly outcome: Uint8Array
  readonly fingerprint: Uint8Array
  readonly generation: number
}

/** How a leader ended: with a stored outcome, refused at its claim with an error that holds for its followers too, or with neither. */
export type LeadEnd =
  | { readonly kind: 'stored'; readonly stored: Stored }
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'nothing' }

/** The leader's side. */
export interface Lead {
  /** Monotonic time at which it began. */
  readonly startedAt: number
  /** Monotonic time until which it may wait for another owner. */
  readonly until: number
  /** Another owner, elsewhere, holds the intent; the leader waits. `fingerprint` is the running one where it can be seen. */
  waiting(fingerprint: Uint8Array | undefined, leftMs: number | undefined): void
  /** The claim is the leader's; its work runs. `leftMs` tells what is left of its lease, where it has one. */
  working(leftMs?: () => number): void
  /** Lets the followers go. Only the first call counts. */
  end(end: LeadEnd): void
}

export interface Sharing {
  /** Becomes the leader, or undefined: somebody leads already. */
  lead(name: string, fingerprint: Fingerprint, waitMs: number): Lead | undefined
  /** Waits as a follower until a stored outcome is there, until it may lead itself, or until `waitMs` is over. */
  follow(name: string, fingerprint: Fingerprint, waitMs: number): Promise<Lead | Stored>
}

interface Entry {
  phase: 'claiming' | 'waiting' | 'working' | 'ended'
  readonly fingerprint: Fingerprint
  heldFingerprint: Uint8Array | undefined
  heldLeftMs: () => number | undefined
  end: LeadEnd
  /** Followers, to be called at the next change; there are none in most cases, and then nothing is paid for them. */
  followers: (() => void)[] | undefined
}

export function isLead(joined: Lead | Stored): joined is Lead {
  return 'working' in joined
}

export function createSharing(clock: Clock): Sharing {
  const entries = new Map<string, Entry>()

  async function follow(name: string, fingerprint: Fingerprint, waitMs: number): Promise<Lead | Stored> {
    const until = clock.monotonic() + waitMs
    for (;;) {
      const entry = entries.get(name)
      if (entry === undefined) return start(name, fingerprint, until)
      const leftMs = until - clock.monotonic()
      if (entry.phase === 'working' || entry.phase === 'waiting') refuseIfUseless(entry, fingerprint, leftMs)
      // A claim under way is not "running" yet: whoever follows it waits for the store's word, as it would have to on its own.
      if (entry.phase === 'claiming') await changed(entry)
      else await changedWithin(clock, entry, leftMs)
      if (entry.phase !== 'ended') continue
      const stored = take(entry, fingerprint, until - clock.monotonic())
      if (stored !== undefined) return stored
    }
  }

  function lead(name: string, fingerprint: Fingerprint, waitMs: number): Lead | undefined {
    return entries.has(name) ? undefined : start(name, fingerprint, clock.monotonic() + waitMs)
  }

  function start(name: string, fingerprint: Fingerprint, until: number): Lead {
    const entry: Entry = {
      phase: 'claiming',
      fingerprint,
      heldFingerprint: undefined,
      heldLeftMs: () => undefined,
      end: { kind: 'nothing' },
      followers: undefined,
    }
    entries.set(name, entry)

    function move(phase: Entry['phase']): void {
      if (entry.phase === 'ended' || entry.phase === phase) return
      entry.phase = phase
      if (phase === 'ended') entries.delete(name)
      const { followers } = entry
      entry.followers = undefined
      for (const go of followers ?? []) go()
    }

    return {
      startedAt: clock.monotonic(),
      until,
      waiting: (heldFingerprint, leftMs) => {
        entry.heldFingerprint = heldFingerprint
        entry.heldLeftMs = () => leftMs
        move('waiting')
      },
      working: (leftMs) => {
        entry.heldLeftMs = leftMs ?? (() => undefined)
        move('working')
      },
      end: (end) => {
        if (entry.phase !== 'ended') entry.end = end
        move('ended')
      },
    }
  }

  return { lead, follow }
}

function changed(entry: Entry): Promise<void> {
  return new Promise((resolve) => {
    entry.followers ??= []
    entry.followers.push(resolve)
  })
}

function changedWithin(clock: Clock, entry: Entry, leftMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(leftMs, () => {
      // A hot key would collect those who have given up, for as long as its leader works.
      entry.followers = entry.followers?.filter((one) => one !== go)
      resolve()
    })
    function go(): void {
      cancel()
      resolve()
    }
    entry.followers ??= []
    entry.followers.push(go)
  })
}

/** Refuses a follower that cannot gain by waiting: another request under the same key, or no time left (rule 16). */
function refuseIfUseless(entry: Entry, fingerprint: Fingerprint, leftMs: number): void {
  const running = entry.phase === 'working' ? entry.fingerprint.bytes() : entry.heldFingerprint
  if (running !== undefined && !fingerprint.matches(running)) throw fail('KEY_REUSED')
  if (leftMs <= 0) throw fail('IN_PROGRESS', { retryAfterMs: retryAfterHeldMs(entry.heldLeftMs()) })
}

/** What an ended leader leaves for a follower; undefined: nothing, the follower has to ask for itself. */
function take(
  { end, fingerprint: led }: Entry,
  fingerprint: Fingerprint,
  leftMs: number,
): Stored | undefined {
  switch (end.kind) {
    case 'stored':
      return end.stored
    case 'refused': {
      // The patience that has ended was the leader's own; a follower that has more of it asks again.
      const waits = isRetrysafeError(end.error) && end.error.code === 'IN_PROGRESS' && leftMs > 0
      // The verdict on the leader's request says nothing about another request under the same key.
      if (!waits && isSame(led, fingerprint)) throw end.error
      return undefined
    }
    case 'nothing':
      return undefined
    default:
      return end satisfies never
  }
}

/** Whether two requests mean the same; not if the leader's turned out to be malformed. */
function isSame(led: Fingerprint, follower: Fingerprint): boolean {
  try {
    return follower.matches(led.bytes())
  } catch {
    return false
  }
}
