/** The functions of lease mode: each ONE script on the one key of a record, conditional on the owner token (rule 3). */
import { randomBytes } from 'node:crypto'
import { fail } from '../../errors.js'
import type { ClaimAnswer, ClaimRequest, Renewal, Store } from '../../store.js'
import type { Redis } from './driver.js'
import { patienceOf } from './patience.js'
import { base64, latestMs, nameOf, seenRecord, wholeMs } from './record.js'
import { scripts } from './scripts.js'

/**
 * How long a record stays in Redis beyond its retention, in ms. Within it the end in the record is what is judged, so a server's clock that jumps ahead by
 * less frees no done key, and a caller's clock that is behind is still listened to (rule 5): its tolerance is half of this.
 */
const pastMs = 10 * 60_000

/** The least time a renewal may take, in ms; else a third of the shortest lease, after which the next renewal is due. */
const leastPatienceMs = 1000

/**
 * The next follows at once where the clock is not known yet, has jumped, or is another server's of the cluster: the answer has shown what it is. So
 * the first claim of a process, which nobody could tell to be late, is none.
 */
const claimTries = 3

/** Where records are, and how long an unfinished one is remembered. */
export interface Ledger {
  readonly redis: Redis
  readonly prefix: string
  readonly unfinishedRetainMs: number
  readonly answerTimeoutMs: number
}

/** What a script answered: a word first. */
type Answer = readonly string[]

type LeaseMode = Pick<Store, 'claim' | 'takeOver' | 'abandon' | 'renew' | 'complete' | 'release' | 'find'>

export function leaseMode(ledger: Ledger): LeaseMode {
  const { redis, prefix, answerTimeoutMs } = ledger
  const patience = patienceOf(answerTimeoutMs)
  const { running, settled, unfinished } = expiries(ledger)
  return {
    claim,
    takeOver: async ({ identity, owner, fingerprint, leaseMs, callerNowMs, seen }) => {
      const claim = [owner, base64(fingerprint), wholeMs(leaseMs), running(leaseMs)]
      const guard = [seen.owner, String(seen.generation), String(latestMs(callerNowMs))]
      // The claim that has seen the record has shown the clock, unless that was another store's.
      const last = String(patience.lastInstantMs() ?? Number.MAX_SAFE_INTEGER)
      const answer = await redis.run(scripts.takeOver, nameOf(prefix, identity), ...claim, ...guard, last)
      if (!wrote(answer)) return undefined
      return { generation: Number(answer[1]), attempts: Number(answer[2]) }
    },
    abandon: async ({ identity, owner, generation, retainMs }) => {
      const values = [mark(), String(generation), wholeMs(retainMs), unfinished(retainMs), owner]
      return wrote(await redis.run(scripts.abandon, nameOf(prefix, identity), ...values))
    },
    complete: async ({ identity, owner, outcome, retainMs }) => {
      const values = [mark(), owner, wholeMs(retainMs), settled(retainMs), base64(outcome)]
      return wrote(await redis.run(scripts.complete, nameOf(prefix, identity), ...values))
    },
    release: async ({ identity, owner, retainMs }) => {
      const values = [mark(), owner, wholeMs(retainMs), settled(retainMs), unfinished(retainMs)]
      return wrote(await redis.run(scripts.release, nameOf(prefix, identity), ...values))
    },
    renew,
    find: async (identity, callerNowMs) => {
      const answer = await redis.run(scripts.find, nameOf(prefix, identity))
      return answer[0] === 'refused' ? undefined : seenIn(answer, callerNowMs)
    },
  }

  async function claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { identity, owner, fingerprint, leaseMs, callerNowMs } = request
    const values = [owner, base64(fingerprint), wholeMs(leaseMs), running(leaseMs)]
    for (let tries = 0; tries < claimTries; tries += 1) {
      const sentAt = performance.now()
      const answer = await redis.run(
        scripts.claim,
        nameOf(prefix, identity),
        ...values,
        String(patience.lastInstantMs() ?? 0),
      )
      patience.note(Number(answer[2]), sentAt)
      if (answer[0] === 'late') continue
      const seen = seenIn(answer, callerNowMs)
      const mine = seen.state === 'running' && seen.owner === owner
      // Ours although it was there: the answer to the claim was lost, and it was sent again (rule 2).
      if (answer[0] !== 'written' && !mine) return { claimed: false, seen }
      return { claimed: true, generation: seen.generation, attempts: seen.attempts }
    }
    throw new Error('Redis took the claim for one that came too late')
  }

  async function renew(renewals: readonly Renewal[]): Promise<readonly (boolean | undefined)[]> {
    if (renewals.length === 0) return []
    const shortestMs = Math.min(...renewals.map(({ leaseMs }) => leaseMs))
    const hasty = redis.within(Math.max(leastPatienceMs, shortestMs / 3))
    // Sent in one turn of the event loop, so they travel together; each to its own slot, which one command could not reach.
    const sent = renewals.map(async ({ identity, owner, leaseMs }) => {
      const values = [owner, wholeMs(leaseMs), running(leaseMs)]
      return wrote(await hasty.run(scripts.renew, nameOf(prefix, identity), ...values))
    })
    const ends = await Promise.allSettled(sent)
    const [first] = ends
    // One server of a cluster that is down does not take the leases of the others along.
    if (first?.status === 'rejected' && ends.every(({ status }) => status === 'rejected')) throw first.reason
    return ends.map((end) => (end.status === 'fulfilled' ? end.value : undefined))
  }
}

/** How long Redis itself is to keep a record, in ms, by the state that it enters. */
export function expiries({ unfinishedRetainMs }: Pick<Ledger, 'unfinishedRetainMs'>) {
  return {
    running: (leaseMs: number) => wholeMs(leaseMs + unfinishedRetainMs),
    settled: (retainMs: number) => wholeMs(retainMs + pastMs),
    /** Unknown, or with steps: retention alone does not end it (rule 20). */
    unfinished: (retainMs: number) => wholeMs(Math.max(retainMs, unfinishedRetainMs) + pastMs),
  }
}

/** Names one command, for the case that it is sent twice. */
export function mark(): string {
  return randomBytes(12).toString('base64url')
}

export function wrote([kind]: Answer): boolean {
  if (kind === 'corrupt') throw fail('RECORD_CORRUPT', { detail: 'it has not the words of a record' })
  return kind === 'written'
}

function seenIn([, value = '', nowMs]: Answer, callerNowMs: number) {
  return seenRecord(value, Number(nowMs), latestMs(callerNowMs))
}
