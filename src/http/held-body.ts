/**
 * The body of a captured reply: what is remembered for the record, what waits here, and what may go on to the client.
 */
import type { CaptureOptions } from './capture.js'
import type { Framing } from './head.js'

/** No service sends 16 replies of the largest kept size in one, and every process has 16 MiB for one that does. */
const replies = 16
const leastHeldBytes = 16 * 1024 * 1024

/** How much a transaction-mode reply that is written in pieces may come to: it all waits in memory for the COMMIT. */
export function mostHeldBytes(maxReplyBytes: number): number {
  return Math.max(leastHeldBytes, replies * maxReplyBytes)
}

export interface HeldBody {
  /** Takes a piece in; answers with what of it may leave now. */
  take(piece: Buffer): Buffer
  /** Takes the last piece in: it waits with the end. */
  takeLast(piece: Buffer): void
  /** How a client will know its end, and whether it is a stream of events, which is not remembered. */
  announce(framing: Framing, isEventStream: boolean): void
  /** Whether the head waits as well, because a client could take it alone, or what comes before the connection ends, for the answer. */
  isHeadHeld(): boolean
  /** Nobody receives it any more: nothing waits from here on. */
  goesNowhere(): void
  /** What waits, for the client. */
  letGo(): Buffer
  /** What is remembered; undefined where it was too much, or not to be. */
  remembered(): Buffer | undefined
  /** Whether more was written than may be held until the COMMIT. */
  isTooMuch(): boolean
}

export function createHeldBody({ hold, maxBytes }: Pick<CaptureOptions, 'hold' | 'maxBytes'>): HeldBody {
  const mostBytes = hold === 'all' ? mostHeldBytes(maxBytes) : Number.POSITIVE_INFINITY
  let whole: Buffer[] | undefined = []
  let held: Buffer[] = []
  let length = 0
  let passedLength = 0
  let heldLength = 0
  let announced = Number.POSITIVE_INFINITY
  /** Of a body that only the end of the connection ends: how much waits before the first byte leaves. */
  let mostWaiting: number | undefined
  let received = true

  function remember(piece: Buffer): void {
    length += piece.length
    if (length > maxBytes) whole = undefined
    whole?.push(piece)
  }

  function take(piece: Buffer): Buffer {
    const before = length
    remember(piece)
    const nothing = piece.subarray(0, 0)
    if (!received) return nothing
    if (hold === 'all') {
      held.push(piece)
      return nothing
    }
    if (mostWaiting !== undefined) return takeUnended(piece, mostWaiting)
    // The last byte announced stays here. What goes beyond it would be read as the next reply: no client gets it.
    const now = piece.subarray(0, Math.max(0, announced - 1 - passedLength))
    const rest = piece.subarray(now.length, Math.max(0, announced - before))
    if (rest.length > 0) held.push(rest)
    passedLength += now.length
    return now
  }

  /**
   * A connection may end at any byte, so no part of such a body is safe to show. Beyond what may wait it has to go, but for its last byte:
   * no one-piece value (JSON, a file with a trailer) is whole without that.
   */
  function takeUnended(piece: Buffer, most: number): Buffer {
    held.push(piece)
    heldLength += piece.length
    if (heldLength <= most) return piece.subarray(0, 0)
    mostWaiting = 0
    const all = letGo()
    held.push(all.subarray(-1))
    heldLength = 1
    return all.subarray(0, -1)
  }

  function announce(framing: Framing, isEventStream: boolean): void {
    if (isEventStream) whole = undefined
    if (framing.by === 'length') announced = framing.bytes
    if (framing.by === 'close' && !isEventStream) mostWaiting = mostHeldBytes(maxBytes)
  }

  function takeLast(piece: Buffer): void {
    remember(piece)
    if (received) held.push(piece)
  }

  function letGo(): Buffer {
    const rest = Buffer.concat(held)
    held = []
    return rest
  }

  return {
    take,
    takeLast,
    announce,
    isHeadHeld: () => announced === 0 || mostWaiting !== undefined,
    goesNowhere: () => {
      received = false
      held = []
    },
    letGo,
    remembered: () => whole && Buffer.concat(whole),
    isTooMuch: () => length > mostBytes,
  }
}
