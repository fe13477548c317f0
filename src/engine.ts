/**
 * What the runners share: the parts of an instance, how a call's refusal becomes an error and an event, and how a stored
 * outcome becomes an answer.
 */
import type { Answer, Call, ResolvedIntent } from './attempt.js'
import type { Cache } from './cache.js'
import type { Clock, Random } from './clock.js'
import { fail, isRetrysafeError, type RetrysafeError } from './errors.js'
import type { EventMap, EventName, Events, IntentEvent } from './events.js'
import type { Habit } from './habit.js'
import { recordDigest } from './key.js'
import type { Keeper } from './lease.js'
import { decodeOutcome, encodeOutcome, type Outcome, statusOf } from './outcome.js'
import { type Ask, type Refusal, retryAfterHeldMs } from './protocol.js'
import { isLead, type Lead, type Sharing, type Stored } from './sharing.js'
import { clockToleranceMs, recordName, type SeenRecord, type Store } from './store.js'

/** The parts of an instance. */
export interface Engine<Tx> {
  readonly store: Store<Tx>
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  readonly sharing: Sharing
  readonly keeper: Keeper
  readonly habit: Habit
  readonly cache: Cache | undefined
}

/**
 * First and longest pause between two looks at an intent that somebody else holds, in ms, doubling. Measured with 64 waiters: they hold 3
 * connections, and half of them hear within 90 ms.
 */
const firstPauseMs = 10
const longestPauseMs = 160

/** Names of the events that tell of an intent. */
type IntentEventName = {
  [Name in EventName]: EventMap[Name] extends IntentEvent ? Name : never
}[EventName]

/** Tells what happened to an intent, if anybody listens. */
export function tell<Tx>(
  { events }: Engine<Tx>,
  name: IntentEventName,
  { identity, operation, policy }: ResolvedIntent,
  granted?: { generation: number; attempts?: number },
): void {
  if (!events.isHeard(name)) return
  events.emit(name, {
    record: recordDigest(identity.key, identity.scope),
    operation,
    mode: policy.mode,
    ...(granted && { generation: granted.generation }),
    ...(granted?.attempts !== undefined && { attempt: granted.attempts }),
  })
}

/** What the protocol is asked on behalf of a call. */
export function askOf(call: ResolvedIntent, owner: string, granted: boolean): Ask {
  const { fingerprint, policy } = call
  return { owner, granted, matches: fingerprint.matches, onOwnerLost: policy.onOwnerLost }
}

/** Leads the call, or follows an equal one that is under way in this process or finished in its cache. */
export async function shared<Tx, Value>(
  engine: Engine<Tx>,
  call: Call<Value>,
  run: (lead: Lead) => Promise<Answer<Value>>,
): Promise<Answer<Value>> {
  const { sharing, cache } = engine
  const name = recordName(call.identity)
  const lead = cache?.get(name) ?? sharing.lead(name, call.fingerprint, call.policy.waitMs)
  const joined = lead ?? (await follow(engine, call, name))
  if (!isLead(joined)) return replay(engine, call, checked(engine, call, joined))
  try {
    const answer = await run(joined)
    engine.habit.note(answer.replayed)
    return answer
  } finally {
    // Whatever was not told by now is nothing that a follower could use.
    joined.end({ kind: 'nothing' })
  }
}

async function follow<Tx>(engine: Engine<Tx>, call: ResolvedIntent, name: string): Promise<Lead | Stored> {
  try {
    return await engine.sharing.follow(name, call.fingerprint, call.policy.waitMs)
  } catch (error) {
    emitRefusal(engine, call, error)
    throw error
  }
}

function checked<Tx>(engine: Engine<Tx>, call: ResolvedIntent, stored: Stored): Stored {
  if (call.fingerprint.matches(stored.fingerprint)) return stored
  throw refusal(engine, call, 'mismatched', undefined)
}

/** Our own outcome is durable: followers get it, and the cache keeps it. */
export function finished<Tx>(engine: Engine<Tx>, call: ResolvedIntent, lead: Lead, stored: Stored): void {
  lead.end({ kind: 'stored', stored })
  engine.cache?.put(recordName(call.identity), stored, lead.startedAt + call.policy.retainMs)
}

/** Whether to look before claiming: the caller says that it retries, or most calls of late were retries. */
export function looksFirst<Tx>({ habit }: Engine<Tx>, call: ResolvedIntent): boolean {
  return call.isRetry || habit.mostlyReplays()
}

/** Gives a stored outcome again. */
export async function replay<Tx, Value>(
  engine: Engine<Tx>,
  call: Call<Value>,
  stored: Stored,
): Promise<Answer<Value>> {
  const outcome = await replayable(call, stored)
  if (outcome.kind !== 'unreplayable') tell(engine, 'replayed', call, stored)
  return { value: call.format.toValue(outcome), replayed: true }
}

/** Decodes a stored outcome, if this caller may have it. */
export async function replayable(call: ResolvedIntent, stored: Stored): Promise<Outcome> {
  const outcome = decodeOutcome(stored.outcome)
  const { mayReplay } = call.policy
  if (mayReplay === undefined) return outcome
  const { key } = call.identity
  const { scope, operation, context } = call
  const record = { key, scope, operation, generation: stored.generation, status: statusOf(outcome) }
  if (!(await mayReplay(record, context))) throw fail('REPLAY_REFUSED')
  return outcome
}

/** Moves what a silent owner left to `unknown`. False: it has spoken meanwhile, look again (rule 3). */
export async function abandon<Tx>(
  engine: Engine<Tx>,
  call: ResolvedIntent,
  seen: SeenRecord,
): Promise<boolean> {
  const { owner, generation } = seen
  try {
    const { retainMs } = call.policy
    return await engine.store.abandon({ identity: call.identity, owner, generation, retainMs })
  } catch (error) {
    throw storeFailure(engine, 'abandon', error)
  }
}

/** A record that is done, as something to replay. */
export function storedOf(seen: SeenRecord): Stored {
  if (seen.outcome === undefined) throw fail('RECORD_CORRUPT', { detail: 'a done record has no outcome' })
  return { outcome: seen.outcome, fingerprint: seen.fingerprint, generation: seen.generation }
}

/** The error for a refusal, with its event; a refusal that holds for the whole process is told to the followers. */
export function refusal<Tx>(
  engine: Engine<Tx>,
  call: ResolvedIntent,
  because: Refusal,
  seen: SeenRecord | undefined,
): RetrysafeError {
  const error = refusalError(because, seen)
  emitRefusal(engine, call, error)
  return error
}

export function refusalError(because: Refusal, seen: SeenRecord | undefined): RetrysafeError {
  switch (because) {
    case 'mismatched':
      return fail('KEY_REUSED')
    case 'held':
      return fail('IN_PROGRESS', { retryAfterMs: retryAfterHeldMs(seen?.live ? seen.leftMs : undefined) })
    case 'unknown':
      return fail('OUTCOME_UNKNOWN')
    case 'dead':
      return fail('DEAD_LETTER')
    default:
      return because satisfies never
  }
}

function emitRefusal<Tx>(engine: Engine<Tx>, call: ResolvedIntent, error: unknown): void {
  if (!isRetrysafeError(error)) return
  const names: Partial<Record<string, 'held' | 'mismatched' | 'unknown' | 'dead'>> = {
    IN_PROGRESS: 'held',
    KEY_REUSED: 'mismatched',
    OUTCOME_UNKNOWN: 'unknown',
    DEAD_LETTER: 'dead',
  }
  const name = names[error.code]
  if (name !== undefined) tell(engine, name, call)
}

/** Wraps a failure of the store, so that no driver's message reaches a caller. Errors of ours pass. */
export function storeFailure<Tx>(engine: Engine<Tx>, during: string, error: unknown): RetrysafeError {
  if (isRetrysafeError(error)) return error
  engine.events.emit('storeError', { during, error } satisfies EventMap['storeError'])
  return fail('STORE_UNAVAILABLE', { cause: error })
}

/** Tells when the clocks are further apart than retention tolerates (rule 5). */
export function watchClock<Tx>(engine: Engine<Tx>, seen: SeenRecord | undefined): void {
  if (seen === undefined) return
  const gapMs = seen.storeNowMs - engine.clock.now()
  if (Math.abs(gapMs) > clockToleranceMs) engine.events.emit('clockGap', { gapMs })
}

/** Pause before look number `looks` (from 0) at an intent that is held: doubling, with up to half of it taken off by chance. */
export function pauseMs<Tx>(engine: Engine<Tx>, looks: number): number {
  const whole = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(looks, 10))
  return whole * (1 - engine.random.fraction() / 2)
}

/** The outcome as bytes and, unless it cannot be given again, the value as every later caller will get it (rule 9). */
export function encode<Value>(call: Call<Value>, outcome: Outcome): Uint8Array {
  return encodeOutcome(outcome, call.policy.maxReplyBytes)
}

/** What the first caller gets once its outcome is stored: decoded from the stored bytes, or whole where those hold less (rule 12). */
export function firstAnswer<Value>(
  call: Call<Value>,
  bytes: Uint8Array,
  original: { readonly value: Value } | { readonly error: unknown },
): Answer<Value> {
  const outcome = decodeOutcome(bytes)
  if ('error' in original && (outcome.kind === 'failure' || outcome.kind === 'unreplayable'))
    throw original.error
  if ('value' in original && outcome.kind === 'unreplayable')
    return { value: original.value, replayed: false }
  return { value: call.format.toValue(outcome), replayed: false }
}
