/**
 * Time that the test moves, and chance that a seed repeats.
 */
import { type Clock, longestTimerMs, type Random } from '../clock.js'

/** A clock that stands still until it is moved. */
export interface MovableClock extends Clock {
  /**
   * Moves both times forward by `ms`. Timers that fall due on the way fire in order, each at its own time; after each one, everything
   * it set going that needs no I/O has run before the next fires.
   */
  advance(ms: number): Promise<void>
  /** Sets the wall time alone, as an operator or a time server does; the monotonic time and the timers do not notice. */
  setWall(nowMs: number): void
  /** How many timers are waiting. */
  pending(): number
}

interface Timer {
  readonly dueAt: number
  fire(): void
}

/**
 * A clock for tests. Wall time starts at `nowMs`, by default the machine's.
 *
 * @example
 * ```ts
 * const clock = movableClock()
 * const safe = retrysafe({ store: memory({ clock }), mode: 'lease', clock })
 * await clock.advance(30_000)
 * ```
 */
export function movableClock({ nowMs = Date.now() }: { readonly nowMs?: number } = {}): MovableClock {
  let passedMs = 0
  let wallAtStart = nowMs
  const timers = new Set<Timer>()

  function schedule(delayMs: number, fire: () => void): () => void {
    const timer = { dueAt: passedMs + Math.min(Math.max(0, delayMs), longestTimerMs), fire }
    timers.add(timer)
    return () => timers.delete(timer)
  }

  /** The timer that fires next; of two at one time the one that was set first. */
  function next(until: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of timers) {
      if (timer.dueAt <= until && (first === undefined || timer.dueAt < first.dueAt)) first = timer
    }
    return first
  }

  async function advance(ms: number): Promise<void> {
    const until = passedMs + ms
    await settled()
    for (let timer = next(until); timer !== undefined; timer = next(until)) {
      timers.delete(timer)
      passedMs = Math.max(passedMs, timer.dueAt)
      timer.fire()
      await settled()
    }
    passedMs = Math.max(passedMs, until)
  }

  return {
    now: () => wallAtStart + passedMs,
    monotonic: () => passedMs,
    schedule,
    advance,
    setWall: (wallMs) => {
      wallAtStart = wallMs - passedMs
    },
    pending: () => timers.size,
  }
}

/** A turn of the event loop comes after every microtask, those that microtasks add included. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/**
 * Chance that the same seed repeats; for tests only, its tokens can be guessed.
 *
 * The generator is xorshift128 (Marsaglia, "Xorshift RNGs", 2003), its state filled from the seed by a Weyl sequence with a mixing step.
 */
export function seededRandom(seed: number): Random {
  let weyl = seed | 0
  const state = Uint32Array.from({ length: 4 }, fill)

  function fill(): number {
    weyl = (weyl + 0x9e3779b9) | 0
    let mixed = Math.imul(weyl ^ (weyl >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return mixed ^ (mixed >>> 15)
  }

  function word(): number {
    const [a = 0, b = 0, c = 0, d = 0] = state
    let mixed = d ^ (d << 11)
    mixed ^= mixed >>> 8
    state.set([mixed ^ a ^ (a >>> 19), a, b, c])
    return state[0] as number
  }

  function bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => word() >>> 24)
  }

  return {
    ownerToken: () => {
      const hex = Buffer.from(bytes(16)).toString('hex')
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
        '-',
      )
    },
    bytes,
    fraction: () => word() / 2 ** 32,
  }
}
