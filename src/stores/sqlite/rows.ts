/** Reads rows of the store's table; one that cannot be read is an error, never "absent" (rule 13). */
import { clockToleranceMs, type Identity, type RecordState, type SeenRecord } from '../../store.js'
import { corrupt, numberOf, stateNumbers, stateOf } from '../columns.js'
import type { Connection, Values } from './connection.js'
import type { Row } from './handles.js'
import { statements } from './statements.js'

export { numberOf, stateNumbers }

/** A whole number that JavaScript can hold exactly; a shared connection may give it as a bigint. */
export function integerIn(row: Row | undefined, column: string): number {
  const value = Number(row?.[column] ?? Number.NaN)
  if (!Number.isSafeInteger(value)) throw corrupt(`${column} is no safe integer`)
  return value
}

export function textIn(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw corrupt(`${column} is no text`)
  return value
}

function bytesIn(row: Row, column: string): Uint8Array {
  const value = row[column]
  if (!(value instanceof Uint8Array)) throw corrupt(`${column} holds no bytes`)
  return value
}

export function stateIn(row: Row): RecordState {
  return stateOf(integerIn(row, 'state'))
}

/** Whether it lives, and for how long: a lease by the store's clock alone, all else by the lesser of both clocks (rule 5). */
export function lifeIn(row: Row, state: RecordState, callerNowMs: number) {
  const storeNowMs = integerIn(row, 'now_ms')
  const judge = state === 'running' ? storeNowMs : Math.min(storeNowMs, latestMs(callerNowMs))
  const endsAt = integerIn(row, 'ends_at')
  return { live: endsAt > judge, leftMs: endsAt - storeNowMs, storeNowMs }
}

function seenIn(row: Row, callerNowMs: number): SeenRecord {
  const state = stateIn(row)
  const fingerprint = bytesIn(row, 'fingerprint')
  if (fingerprint.length === 0) throw corrupt('its fingerprint is empty')
  return {
    state,
    owner: textIn(row, 'owner'),
    generation: integerIn(row, 'generation'),
    attempts: integerIn(row, 'attempts'),
    fingerprint,
    ...(state === 'done' ? { outcome: bytesIn(row, 'outcome') } : {}),
    hasSteps: integerIn(row, 'has_steps') === 1,
    ...lifeIn(row, state, callerNowMs),
  }
}

/** Looks a record up through a connection, as that connection sees it. */
export function lookUp(
  connection: Connection,
  identity: Identity,
  callerNowMs: number,
): SeenRecord | undefined {
  const [row] = connection.rows(statements.lookUp, nameOf(identity))
  return row && seenIn(row, callerNowMs)
}

/** Whether a record that was seen stands: a claim may not replace it. The statement that would judges again. */
export function stands(seen: SeenRecord | undefined): boolean {
  if (seen === undefined || seen.state === 'released') return false
  return seen.live || seen.state === 'unknown' || seen.state === 'dead'
}

export function nameOf({ key, scope }: Identity): Values {
  return { key, scope }
}

/** The latest instant, in ms since 1970, that retention is judged by: it never passes before the caller's clock agrees (rule 5). */
export function latestMs(callerNowMs: number): number {
  return Math.floor(callerNowMs + clockToleranceMs)
}

/** A duration in whole ms, rounded up so that nothing ends early. */
export function wholeMs(durationMs: number): number {
  return Math.ceil(durationMs)
}
