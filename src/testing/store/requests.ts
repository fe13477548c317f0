/** Requests to a store, with what a case does not care about filled in. */
import { randomUUID } from 'node:crypto'
import type { ClaimRequest, Granted, Identity, SeenRecord, Store } from '../../store.js'
import { holds, present } from '../check.js'
import { aheadMs } from './room.js'

export const minuteMs = 60_000
/** Versioned bytes to a store are bytes; these are no outcome that the library could read. */
export const outcome = Uint8Array.of(1, 2, 3)
export const printA = Uint8Array.of(1, 0xaa)
export const printB = Uint8Array.of(1, 0xbb)

/** A claim under a token of its own: lease one minute, fingerprint A. */
export function claimOf(identity: Identity, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    identity,
    owner: randomUUID(),
    fingerprint: printA,
    leaseMs: minuteMs,
    callerNowMs: aheadMs,
    ...more,
  }
}

/** A claim that was granted. */
export interface Held extends Granted {
  readonly identity: Identity
  readonly owner: string
}

/** Claims an absent record. */
export async function hold<Tx>(
  store: Store<Tx>,
  identity: Identity,
  more: Partial<ClaimRequest> = {},
): Promise<Held> {
  const request = claimOf(identity, more)
  const answer = await store.claim(request)
  holds('a claim of an absent record is granted', answer.claimed)
  const { generation, attempts } = answer
  return { identity, owner: request.owner, generation, attempts }
}

/** Claims an absent record and completes it. */
export async function complete<Tx>(
  store: Store<Tx>,
  identity: Identity,
  retainMs: number = 10 * minuteMs,
): Promise<Held> {
  const held = await hold(store, identity)
  holds('the owner completes', await store.complete({ identity, owner: held.owner, outcome, retainMs }))
  return held
}

/** Claims an absent record, lets the lease run out and abandons it: `unknown`. */
export async function abandon<Tx>(
  store: Store<Tx>,
  identity: Identity,
  advance: (ms: number) => Promise<void>,
  retainMs: number = 10 * minuteMs,
): Promise<Held> {
  const held = await hold(store, identity)
  await advance(minuteMs + 1)
  holds('a lapsed claim is abandoned', await store.abandon({ ...held, retainMs }))
  return held
}

/** The record, which must be there. */
export async function look<Tx>(
  store: Store<Tx>,
  identity: Identity,
  callerNowMs: number = aheadMs,
): Promise<SeenRecord> {
  return present('the record', await store.find(identity, callerNowMs))
}

/** What stays of a look-up when no time is counted: what two looks must agree on. */
export function standing({ state, owner, generation, attempts, fingerprint, outcome: kept }: SeenRecord) {
  return {
    state,
    owner,
    generation,
    attempts,
    fingerprint: Uint8Array.from(fingerprint),
    outcome: kept && Uint8Array.from(kept),
  }
}
