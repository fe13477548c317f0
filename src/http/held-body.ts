/**
 * The body of a captured reply: what is remembered for the record, what waits here, and what may go on to the client.
 */
import type { CaptureOptions } from './capture.js'

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
  /** The length that the head announces, if it does. */
  announce(length: number | undefined): void
  /** Nobody receives it any more: nothing waits from here on. */
  goesNowhere(): void
  /** It is not to be remembered. */
  forget(): void
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
  let announced = Number.POSITIVE_INFINITY
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
    // The last byte announced stays here. What goes beyond it would be read as the next reply: no client gets it.
    const now = piece.subarray(0, Math.max(0, announced - 1 - passedLength))
    const rest = piece.subarray(now.length, Math.max(0, announced - before))
    if (rest.length > 0) held.push(rest)
    passedLength += now.length
    return now
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
    announce: (bytes) => {
      announced = bytes ?? Number.POSITIVE_INFINITY
    },
    goesNowhere: () => {
      received = false
      held = []
    },
    forget: () => {
      whole = undefined
    },
    letGo,
    remembered: () => whole && Buffer.concat(whole),
    isTooMuch: () => length > mostBytes,
  }
}
