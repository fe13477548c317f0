/**
 * Keeps leases alive, and says in time when one is lost (rule 18).
 *
 * The local deadline is counted from BEFORE the claim or renewal was sent, on the monotonic clock, so it lies before the store's own lease end,
 * however long the answer took. All leases that are due go to the store in one command (rule 6). The signal
 * fires a margin before the deadline; and since a blocked event loop fires no timer, `check` compares the clock again.
 */
import type { Clock } from './clock.js'
import { fail, type RetrysafeError } from './errors.js'
import type { Events } from './events.js'
import { armed, hit } from './failpoints.js'
import type { Owned, Store } from './store.js'
import { createControl } from './work.js'

/** A lease is renewed after a third of it has passed: two renewals may fail before it is lost. */
const renewalsPerLease = 3
/** The part of a lease that is left when the signal fires: time to stop before somebody else starts. */
const marginPart = 0.1

export interface Lease {
  readonly signal: AbortSignal
  /** The owner token in force; a commit with an unclear end may have drawn a new one (rule 10). */
  owner: string
  /** Set while a completion is under way: it, and not a renewal that comes too late, then tells whether the claim was still ours. */
  completing: boolean
  /** Throws `LEASE_LOST` once the claim is, or may soon be, somebody else's. */
  check(): void
  isLost(): boolean
  /** What is left until the local deadline, in ms. */
  leftMs(): number
  /** Ends the renewals. */
  stop(): void
}

export interface LeaseTerms {
  readonly owned: Owned
  readonly leaseMs: number
  /** Monotonic time before the claim was sent. */
  readonly sentAt: number
  /** Renewal stops this long after the claim was sent. */
  readonly workTimeoutMs: number
  /** Called once, when the lease is lost. */
  readonly onLost: (error: RetrysafeError) => void
}

export interface Keeper {
  keep(terms: LeaseTerms): Lease
  close(): void
}

interface Kept extends Lease {
  readonly terms: LeaseTerms
  deadline: number
  renewAt: number
  renewing: boolean
  lose(cause?: unknown): void
  arm(): void
}

export function createKeeper<Tx>(store: Store<Tx>, clock: Clock, events: Events): Keeper {
  const kept = new Set<Kept>()
  let cancelRound: (() => void) | undefined
  let closed = false

  function keep(terms: LeaseTerms): Lease {
    const lease = createLease(terms, clock, (gone) => {
      if (kept.delete(gone) && kept.size === 0) cancelRound?.()
    })
    kept.add(lease)
    plan()
    return lease
  }

  function plan(): void {
    cancelRound?.()
    cancelRound = undefined
    if (closed) return
    const waiting = [...kept].filter((lease) => !lease.renewing)
    if (waiting.length === 0) return
    const next = Math.min(...waiting.map((lease) => lease.renewAt))
    cancelRound = clock.schedule(next - clock.monotonic(), () => void round(), 'background')
  }

  async function round(): Promise<void> {
    // Whoever is due within a tenth of its interval goes along: one command for many leases costs less than many commands.
    const now = clock.monotonic()
    const due = [...kept].filter((lease) => {
      const early = (lease.terms.leaseMs / renewalsPerLease) * marginPart
      return !lease.renewing && lease.renewAt <= now + early
    })
    for (const lease of due) lease.renewing = true
    plan()
    if (due.length > 0) await renew(due, now)
    plan()
  }

  async function renew(due: readonly Kept[], sentAt: number): Promise<void> {
    const owners = due.map((lease) => lease.owner)
    let answers: readonly (boolean | undefined)[] | undefined
    try {
      if (armed()) await hit('lease.renew')
      answers = await store.renew(
        due.map(({ terms, owner }) => ({ identity: terms.owned.identity, owner, leaseMs: terms.leaseMs })),
      )
      if (armed()) await hit('lease.renewed')
    } catch (error) {
      events.emit('storeError', { during: 'renew', error })
    }
    due.forEach((lease, index) => {
      lease.renewing = false
      lease.renewAt = clock.monotonic() + lease.terms.leaseMs * marginPart
      const answer = answers?.[index]
      // No answer, or a row that somebody has locked: not lost for that, and tried again soon.
      if (answer === undefined) return
      if (answer) {
        lease.deadline = sentAt + lease.terms.leaseMs
        lease.renewAt = sentAt + lease.terms.leaseMs / renewalsPerLease
        lease.arm()
      } else if (owners[index] === lease.owner && !lease.completing) {
        lease.lose()
      }
    })
  }

  /** Ends the renewals. Leases under way run out by themselves, and their work is told in time. */
  function close(): void {
    closed = true
    cancelRound?.()
  }

  return { keep, close }
}

function createLease(terms: LeaseTerms, clock: Clock, remove: (lease: Kept) => void): Kept {
  const control = createControl()
  let cancelWarning: () => void = () => undefined
  let cancelTimeout: () => void = () => undefined
  let lost = false
  let stopped = false

  const lease: Kept = {
    terms,
    owner: terms.owned.owner,
    completing: false,
    get signal() {
      return control.signal
    },
    deadline: terms.sentAt + terms.leaseMs,
    renewAt: terms.sentAt + terms.leaseMs / renewalsPerLease,
    renewing: false,
    check,
    isLost: () => lost || leftMs() <= terms.leaseMs * marginPart,
    leftMs,
    stop,
    lose,
    arm,
  }

  function leftMs(): number {
    return lease.deadline - clock.monotonic()
  }

  function arm(): void {
    cancelWarning()
    if (lost || stopped) return
    cancelWarning = clock.schedule(leftMs() - terms.leaseMs * marginPart, () => lose(), 'background')
  }

  function lose(cause?: unknown): void {
    if (lost || stopped) return
    lost = true
    const error = fail('LEASE_LOST', { cause })
    stop()
    control.abort(error)
    terms.onLost(error)
  }

  function check(): void {
    if (!lease.isLost()) return
    lose()
    throw fail('LEASE_LOST')
  }

  /** The work has had its time: it is told so, and the lease is left to run out, so that another attempt can take over. */
  function expire(): void {
    remove(lease)
    control.abort(fail('WORK_TIMEOUT'))
  }

  function stop(): void {
    stopped = true
    cancelWarning()
    cancelTimeout()
    remove(lease)
  }

  arm()
  cancelTimeout = clock.schedule(terms.sentAt + terms.workTimeoutMs - clock.monotonic(), expire, 'background')
  return lease
}
