/**
 * Finished outcomes of this process, in memory: a replay of one of them asks no store.
 *
 * Off unless asked for. What is done stays done until its retention ends, so an entry can only be too old, and it is dropped before it
 * is: its end is counted on the monotonic clock from before the save was sent. It is filled after our own commit only, never from a
 * transaction of somebody else's whose end is not seen (rule 6). The oldest in use goes first when the bytes run out.
 */
import type { Clock } from './clock.js'
import type { Stored } from './sharing.js'

export interface Cache {
  /** The outcome, unless it is too old or was never here. */
  get(name: string): Stored | undefined
  /** Remembers an outcome until `untilMs` on the monotonic clock. */
  put(name: string, stored: Stored, untilMs: number): void
}

/** What an entry costs besides its outcome and its name, roughly: the map's slot and the objects around it. */
const overheadBytes = 300

export function createCache(clock: Clock, maxBytes: number): Cache {
  const entries = new Map<
    string,
    { readonly stored: Stored; readonly untilMs: number; readonly bytes: number }
  >()
  let bytes = 0

  function get(name: string): Stored | undefined {
    const entry = entries.get(name)
    if (entry === undefined) return undefined
    forget(name)
    if (entry.untilMs <= clock.monotonic()) return undefined
    // Back in at the end: a map keeps the order of insertion, so the front is what was used longest ago.
    entries.set(name, entry)
    bytes += entry.bytes
    return entry.stored
  }

  function put(name: string, stored: Stored, untilMs: number): void {
    const cost = overheadBytes + name.length * 2 + stored.outcome.length + stored.fingerprint.length
    if (cost > maxBytes) return
    forget(name)
    entries.set(name, { stored: ownCopy(stored), untilMs, bytes: cost })
    bytes += cost
    for (const oldest of entries.keys()) {
      if (bytes <= maxBytes) break
      forget(oldest)
    }
  }

  function forget(name: string): void {
    const entry = entries.get(name)
    if (entry === undefined) return
    entries.delete(name)
    bytes -= entry.bytes
  }

  return { get, put }
}

/** Bytes of its own: a view would keep the whole block alive that it was cut from, and the limit would be none. */
function ownCopy({ outcome, fingerprint, generation }: Stored): Stored {
  return { outcome: Uint8Array.from(outcome), fingerprint: Uint8Array.from(fingerprint), generation }
}
