/**
 * Time and chance, injected: the protocol asks these two objects and nothing else, so that tests move time and replay a seed.
 *
 * Wall time is used only where another clock has to be compared with (rule 5: retention ends at the lesser of the store's
 * clock and the caller's plus five minutes). Deadlines are counted on the monotonic clock, which no operator can set back.
 */
import { randomBytes } from 'node:crypto'

/** A source of time; the default is the machine's. */
export interface Clock {
  /** Wall time in ms since 1970. */
  now(): number
  /** Monotonic time in ms from an arbitrary start. */
  monotonic(): number
  /**
   * Calls `fire` once after `delayMs` (at most 2^31 - 1 ms at a time, as `setTimeout`) unless the returned function is called first.
   * A `background` timer does not keep the process alive.
   */
  schedule(delayMs: number, fire: () => void, kind?: 'background'): () => void
}

/** A source of chance; the default is the operating system's. */
export interface Random {
  /** A fresh owner token: 128 random bits, written as a UUID. */
  ownerToken(): string
  /** `length` random bytes, for keys. */
  bytes(length: number): Uint8Array
  /** A number in [0, 1), for jitter only. */
  fraction(): number
}

/** The longest delay `setTimeout` takes; a longer one would fire at once. */
export const longestTimerMs = 2 ** 31 - 1

/** The machine's clocks. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (delayMs, fire, kind) => {
    const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), longestTimerMs))
    if (kind === 'background') timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Random bytes are fetched in blocks: one call for each token costs ten times as much. */
const blockBytes = 4096
let block = Buffer.alloc(0)
let blockAt = 0

/** Bytes that nobody else is given; they are wiped from the block, so that a later look at the memory does not tell a token. */
function fromBlock(length: number): Buffer {
  if (length > blockBytes) return randomBytes(length)
  if (blockAt + length > block.length) {
    block = randomBytes(blockBytes)
    blockAt = 0
  }
  const taken = Buffer.from(block.subarray(blockAt, blockAt + length))
  block.fill(0, blockAt, blockAt + length)
  blockAt += length
  return taken
}

/** The operating system's random source. */
export const systemRandom: Random = {
  ownerToken: () => {
    const hex = fromBlock(16).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  },
  bytes: fromBlock,
  fraction: () => Math.random(),
}

/** Resolves after `delayMs`, or as soon as `signal` is aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.schedule(delayMs, end)
    signal?.addEventListener('abort', end)
  })
}
