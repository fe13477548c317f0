/**
 * Takes a claim in lease mode: in one command where the intent is new, by compare-and-swap where an owner is gone.
 */
import type { ResolvedIntent } from './attempt.js'
import { abandon, askOf, type Engine, storeFailure, tell, watchClock } from './engine.js'
import { armed, hit } from './failpoints.js'
import { type Decision, decide } from './protocol.js'
import type { Lead } from './sharing.js'
import type { ClaimRequest, Granted, SeenRecord } from './store.js'

/** A claim that was granted, with the monotonic time before it was sent. */
export interface Claimed extends Granted {
  readonly owner: string
  readonly sentAt: number
}

/** Asks the store, by a claim or by a look: the claim is ours, or the protocol's word on what stands there. */
export async function ask<Tx>(
  engine: Engine<Tx>,
  call: ResolvedIntent,
  lead: Lead,
  look: 'claim' | 'find',
  held: boolean,
): Promise<Claimed | Decision | 'down'> {
  try {
    if (look === 'claim') return await claim(engine, call)
    const seen = await engine.store.find(call.identity, engine.clock.now())
    return decide(seen, askOf(call, '', true))
  } catch (error) {
    const failure = storeFailure(engine, look, error)
    if (failure.code === 'STORE_UNAVAILABLE' && call.policy.onStoreDown === 'run' && !held) return 'down'
    lead.end({ kind: 'refused', error: failure })
    throw failure
  }
}

async function claim<Tx>(engine: Engine<Tx>, call: ResolvedIntent): Promise<Claimed | Decision> {
  const { store, clock, random } = engine
  const sentAt = clock.monotonic()
  const request: ClaimRequest = {
    identity: call.identity,
    owner: random.ownerToken(),
    fingerprint: call.fingerprint.bytes(),
    leaseMs: call.policy.leaseMs,
    callerNowMs: clock.now(),
  }
  if (armed()) await hit('lease.claim')
  // The same claim under the same token is safe to send again: if the first landed, the second recognises it (rule 2).
  const answer = await store.claim(request).catch(() => store.claim(request))
  if (armed()) await hit('lease.claimed')
  if (answer.claimed) return { ...answer, owner: request.owner, sentAt }
  watchClock(engine, answer.seen)
  if (answer.seen === undefined) return { do: 'refuse', because: 'held', seen: undefined }
  const decision = decide(answer.seen, askOf(call, request.owner, true))
  switch (decision.do) {
    case 'own':
      return { ...decision.seen, owner: request.owner, sentAt }
    case 'takeOver': {
      if (armed()) await hit('lease.takeOver')
      const granted = await takeOver(engine, request, decision.seen)
      if (armed()) await hit('lease.takenOver')
      if (granted === undefined) return { do: 'refuse', because: 'held', seen: undefined }
      if (decision.seen.state === 'running') tell(engine, 'takenOver', call, granted)
      return { ...granted, owner: request.owner, sentAt }
    }
    case 'abandon': {
      if (armed()) await hit('lease.abandon')
      const gone = await abandon(engine, call, decision.seen)
      if (armed()) await hit('lease.abandoned')
      // Not abandoned: its owner has spoken meanwhile, and the next round sees what it said.
      if (!gone) return { do: 'run' }
      return { do: 'refuse', because: 'unknown', seen: decision.seen }
    }
    case 'run':
      // The record vanished between the insert and the look; the next round sees how things stand.
      return { do: 'refuse', because: 'held', seen: undefined }
    case 'replay':
    case 'refuse':
      return decision
    default:
      return decision satisfies never
  }
}

/** A takeover whose answer was lost is recognised by its token, as a claim is (rule 2). */
async function takeOver<Tx>(
  { store }: Engine<Tx>,
  request: ClaimRequest,
  seen: SeenRecord,
): Promise<Granted | undefined> {
  try {
    return await store.takeOver({ ...request, seen })
  } catch (error) {
    const now = await store.find(request.identity, request.callerNowMs)
    if (now?.state === 'running' && now.owner === request.owner) return now
    if (now?.owner === seen.owner && now.generation === seen.generation) throw error
    return undefined
  }
}
