/**
 * Faults on demand around any store: an answer that is lost after it was applied, a call that fails before it is, and a call that
 * waits until the test lets it go. They fire where the plan says and nowhere else, and the plan tells whether they did: a test whose faults
 * never fired has shown nothing.
 */

/** Where a fault can fire: every function of a store, and `save` of an open transaction. */
export type FaultPoint =
  | 'claim'
  | 'takeOver'
  | 'abandon'
  | 'renew'
  | 'complete'
  | 'release'
  | 'find'
  | 'sweep'
  | 'begin'
  | 'within'
  | 'open'
  | 'save'
  | 'readBack'
  | 'renameOwner'

/** How a call fails. In both ways the caller hears the same, so it must not tell them apart. */
export type Fault =
  /** The store does it, and the caller hears of a lost connection. */
  | 'loseAnswer'
  /** The store does nothing, and the caller hears of a lost connection: the same error. */
  | 'failBefore'

/** A call that was stopped at a point. */
export interface Stopped {
  /** Resolves when a call has arrived and waits, nothing of it applied yet. */
  readonly reached: Promise<void>
  /** Lets it go on, as it is or into a fault. */
  release(fault?: Fault): void
}

/** Which calls of a store fail, and how; made by {@link planFaults}, followed by `withFaults`. */
export interface Faults {
  /** The next call there fails so. Several of them queue up. */
  next(point: FaultPoint, fault: Fault): void
  /** The nth call there from now on, counted from 1, fails so. */
  nth(point: FaultPoint, count: number, fault: Fault): void
  /** Every call there fails so, until {@link Faults.heal}. */
  always(point: FaultPoint, fault: Fault): void
  /** The next call there waits until it is released. */
  stop(point: FaultPoint): Stopped
  /** Takes back everything that has not fired; calls that wait go on. */
  heal(): void
  /** How many calls have arrived there. */
  calls(point: FaultPoint): number
  /** How many faults have fired; stops count when they are reached. */
  fired(): number
}

/** What a wrapped store asks at each call. */
export interface FaultPlan extends Faults {
  /** Counts a call, waits where it is stopped, and says how it fails. */
  arrive(point: FaultPoint): Promise<Fault | undefined>
}

interface Planned {
  readonly point: FaultPoint
  /** The number of the call there that it is meant for; undefined: every one. */
  readonly call: number | undefined
  decide(): Promise<Fault | undefined>
  /** Lets whoever waits go on. */
  cancel(): void
}

/** The error of a connection that was cut; node-postgres and postgres.js raise the same. */
export function connectionLost(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}

/**
 * Makes an empty plan: nothing fails until it says so. Points are counted across all stores that follow the plan.
 *
 * @example
 * ```ts
 * const faults = planFaults()
 * faults.next('save', 'loseAnswer')
 * const stopped = faults.stop('claim')
 * void stopped.reached.then(() => stopped.release('failBefore'))
 * ```
 */
export function planFaults(): FaultPlan {
  const counts = new Map<FaultPoint, number>()
  const planned = new Set<Planned>()
  /** Calls that have arrived and wait. */
  const waiting = new Set<Planned>()
  let fired = 0

  function calls(point: FaultPoint): number {
    return counts.get(point) ?? 0
  }

  function plan(point: FaultPoint, call: number | undefined, fault: Fault): void {
    planned.add({ point, call, decide: async () => fault, cancel: () => undefined })
  }

  /** The first call there that no plan names yet. */
  function free(point: FaultPoint): number {
    let call = calls(point) + 1
    while ([...planned].some((one) => one.point === point && one.call === call)) call += 1
    return call
  }

  function stop(point: FaultPoint): Stopped {
    let reach: () => void = () => undefined
    let release: (fault?: Fault) => void = () => undefined
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const released = new Promise<Fault | undefined>((resolve) => {
      release = resolve
    })
    function decide(): Promise<Fault | undefined> {
      reach()
      return released
    }
    planned.add({ point, call: free(point), decide, cancel: release })
    return { reached, release }
  }

  async function arrive(point: FaultPoint): Promise<Fault | undefined> {
    const call = calls(point) + 1
    counts.set(point, call)
    const mine = [...planned].find((one) => one.point === point && (one.call ?? call) === call)
    if (mine === undefined) return undefined
    if (mine.call !== undefined) planned.delete(mine)
    fired += 1
    waiting.add(mine)
    const fault = await mine.decide()
    waiting.delete(mine)
    return fault
  }

  function heal(): void {
    for (const one of [...planned, ...waiting]) one.cancel()
    planned.clear()
  }

  return {
    next: (point, fault) => plan(point, free(point), fault),
    nth: (point, count, fault) => plan(point, calls(point) + count, fault),
    always: (point, fault) => plan(point, undefined, fault),
    stop,
    heal,
    calls,
    fired: () => fired,
    arrive,
  }
}
