/**
 * Runs the work of a granted lease and settles it: complete, release, or learn that the claim is somebody else's.
 */
import type { Answer, Call, Ended, LeaseAttempt } from './attempt.js'
import { sleep } from './clock.js'
import { type Commit, createCommit } from './commit.js'
import {
  askOf,
  type Engine,
  encode,
  finished,
  firstAnswer,
  pauseMs,
  replay,
  storedOf,
  storeFailure,
  tell,
} from './engine.js'
import { fail } from './errors.js'
import { armed, hit } from './failpoints.js'
import type { Lease } from './lease.js'
import type { Claimed } from './lease-claim.js'
import { decide, settle } from './protocol.js'
import type { Lead } from './sharing.js'
import type { SeenRecord } from './store.js'
import { attemptFor, createControl, type End, endWithin, judge } from './work.js'

export type LeaseWork<Tx, Value> = (attempt: LeaseAttempt<Tx>) => Value | Promise<Value>

/** One granted claim, until it is settled. */
interface Running<Tx, Value> {
  readonly engine: Engine<Tx>
  readonly call: Call<Value>
  readonly lead: Lead
  readonly claimed: Claimed
  readonly lease: Lease
  readonly commit: Commit<Tx>
}

export async function perform<Tx, Value>(
  engine: Engine<Tx>,
  call: Call<Value>,
  work: LeaseWork<Tx, Value>,
  lead: Lead,
  claimed: Claimed,
): Promise<Answer<Value>> {
  const { identity, policy } = call
  const lease = engine.keeper.keep({
    owned: { identity, owner: claimed.owner },
    leaseMs: policy.leaseMs,
    sentAt: claimed.sentAt,
    workTimeoutMs: policy.workTimeoutMs,
    onLost: () => {
      tell(engine, 'leaseLost', call, claimed)
      // Whoever comes next must not wait for an attempt that can no longer answer for the intent.
      lead.end({ kind: 'nothing' })
    },
  })
  const running: Running<Tx, Value> = {
    engine,
    call,
    lead,
    claimed,
    lease,
    commit: createCommit(engine, call, lease),
  }
  lead.working(lease.leftMs)
  tell(engine, 'claimed', call, claimed)
  const { attempt, noReturn } = attemptFor(call, claimed, lease, { commit: running.commit.commit })
  // Not beyond the time limit and one more lease: by then the claim is lost.
  const limitMs = policy.workTimeoutMs + policy.leaseMs
  try {
    if (armed()) await hit('lease.work')
    const end = await endWithin(engine.clock, limitMs, () => work(attempt))
    await running.commit.close(end === undefined ? 0 : policy.leaseMs)
    if (armed()) await hit('lease.worked')
    return await settleWork(running, end, noReturn())
  } finally {
    lease.stop()
  }
}

async function settleWork<Tx, Value>(
  running: Running<Tx, Value>,
  end: End<Value> | undefined,
  noReturn: boolean,
): Promise<Answer<Value>> {
  const { call, commit } = running
  const committed = commit.outcome()
  // After commit the intent is done with commit's value, whatever the work returned or threw (rule 26).
  if (committed !== undefined) return stored(running, committed, { value: commit.value() as Value })
  // A lease that seems lost is no reason: the write below is conditional, and finished work is not thrown away unasked.
  if (end === undefined || commit.undecided() || commit.refused()) return adopt(running, end)
  const ended = tryJudge(call, end, noReturn)
  if ('error' in ended) return release(running, ended)
  if (settle({ threw: 'error' in end, kept: ended.kept, failure: ended.failure }) === 'forget')
    return release(running, end)
  const outcome = encode(call, ended.outcome)
  if (armed()) await hit('lease.complete')
  const kept = await complete(running, outcome)
  if (armed()) await hit('lease.completed')
  return kept ? stored(running, outcome, end) : adopt(running, end)
}

/** A `keep` that throws is a failure of the work: the claim must not be left to run out. */
function tryJudge<Value>(call: Call<Value>, end: End<Value>, noReturn: boolean): Ended | { error: unknown } {
  try {
    return judge(call, end, noReturn)
  } catch (error) {
    return { error }
  }
}

function stored<Tx, Value>(running: Running<Tx, Value>, outcome: Uint8Array, end: End<Value>): Answer<Value> {
  const { engine, call, lead, claimed } = running
  const fingerprint = call.fingerprint.bytes()
  finished(engine, call, lead, { outcome, fingerprint, generation: claimed.generation })
  tell(engine, 'completed', call, claimed)
  return firstAnswer(call, outcome, end)
}

/** Writes the outcome; while that fails it is tried again inside the lease, and the claim is not released (rule 8). */
async function complete<Tx, Value>(running: Running<Tx, Value>, outcome: Uint8Array): Promise<boolean> {
  const { engine, call, lease } = running
  const { identity, policy } = call
  lease.completing = true
  // Renewals may go on while completions fail; the caller is not kept waiting for longer than one lease.
  const until = engine.clock.monotonic() + policy.leaseMs
  for (let tries = 0; ; tries += 1) {
    try {
      if (await engine.store.complete({ identity, owner: lease.owner, outcome, retainMs: policy.retainMs }))
        return true
      if (tries === 0) return false
      // An earlier try may have landed although its answer was lost: then the record is done under our token.
      const seen = await engine.store.find(identity, engine.clock.now())
      return seen?.state === 'done' && seen.owner === lease.owner
    } catch (error) {
      const failure = storeFailure(engine, 'complete', error)
      const leftMs = Math.min(lease.leftMs(), until - engine.clock.monotonic())
      if (leftMs <= 0) throw failure
      await sleep(engine.clock, Math.min(leftMs, pauseMs(engine, tries)))
    }
  }
}

/** The work failed in a way that is not kept: the next attempt may run. */
async function release<Tx, Value>(running: Running<Tx, Value>, end: End<Value>): Promise<Answer<Value>> {
  const { engine, call, lease, claimed } = running
  const { identity, policy } = call
  lease.completing = true
  if (armed()) await hit('lease.release')
  let ours = true
  try {
    ours = await engine.store.release({ identity, owner: lease.owner, retainMs: policy.retainMs })
    if (ours) tell(engine, 'released', call, claimed)
  } catch (error) {
    // The lease runs out by itself: the next attempt only has to wait for it.
    storeFailure(engine, 'release', error)
  }
  if (armed()) await hit('lease.released')
  if (!ours) return adopt(running, end)
  if ('error' in end) throw end.error
  return { value: end.value, replayed: false }
}

/** The claim is not ours any more: nothing was written, and what is stored is the answer (rule 3). */
async function adopt<Tx, Value>(
  running: Running<Tx, Value>,
  end: End<Value> | undefined,
): Promise<Answer<Value>> {
  const { engine, call, lead, lease } = running
  if (armed()) await hit('lease.adopt')
  let seen: SeenRecord | undefined
  try {
    seen = await engine.store.find(call.identity, engine.clock.now())
  } catch (error) {
    throw storeFailure(engine, 'find', error)
  }
  const decision = decide(seen, askOf(call, lease.owner, true))
  if (decision.do === 'replay') {
    const found = storedOf(decision.seen)
    lead.end({ kind: 'stored', stored: found })
    return replay(engine, call, found)
  }
  if (running.commit.undecided()) throw fail('STORE_UNAVAILABLE', { detail: 'the commit is not known yet' })
  if (end === undefined) throw fail('WORK_TIMEOUT')
  throw fail('LEASE_LOST', 'error' in end ? { cause: end.error } : {})
}

/** `onStoreDown: 'run'`: the store could not be asked, and the user chose to run all the same (rule 17). Nothing is stored. */
export async function unprotected<Tx, Value>(
  engine: Engine<Tx>,
  call: Call<Value>,
  work: LeaseWork<Tx, Value>,
  lead: Lead,
): Promise<Answer<Value>> {
  lead.working()
  const control = createControl()
  const granted = { generation: Math.floor(engine.clock.now() * 1000), attempts: 1 }
  const commit = () => Promise.reject(fail('STORE_UNAVAILABLE', { detail: 'this attempt runs unprotected' }))
  const { attempt } = attemptFor(call, granted, control, { commit })
  const end = await endWithin(engine.clock, call.policy.workTimeoutMs, () => work(attempt))
  if (end === undefined) {
    const error = fail('WORK_TIMEOUT')
    control.abort(error)
    throw error
  }
  if ('error' in end) throw end.error
  return { value: end.value, replayed: false }
}
