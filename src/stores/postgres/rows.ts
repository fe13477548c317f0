/** Reads rows of the store's table; one that cannot be read is an error, never "absent" (rule 13). */
import type { RecordSummary, SeenRecord } from '../../store.js'
import { corrupt, integerAt, numberOf, stateAt, stateNumbers, textAt } from '../columns.js'
import type { Row } from './driver.js'

export { integerAt, numberOf, stateAt, stateNumbers, textAt }

export function flagAt(row: Row | undefined, column: number): boolean {
  return textAt(row, column) === 't'
}

/** Columns as `seenColumns` in statements.ts lists them, from `first` on. */
export function seenRecord(row: Row, first = 0): SeenRecord {
  const state = stateAt(row, first)
  const fingerprint = Buffer.from(textAt(row, first + 4), 'hex')
  if (fingerprint.length === 0) throw corrupt('its fingerprint is empty')
  const outcome = row[first + 5]
  if (state === 'done' && typeof outcome !== 'string') throw corrupt('it is done without an outcome')
  return {
    state,
    owner: textAt(row, first + 1),
    generation: integerAt(row, first + 2),
    attempts: integerAt(row, first + 3),
    fingerprint,
    ...(state === 'done' && typeof outcome === 'string' ? { outcome: Buffer.from(outcome, 'hex') } : {}),
    hasSteps: flagAt(row, first + 6),
    live: flagAt(row, first + 7),
    leftMs: integerAt(row, first + 8),
    storeNowMs: integerAt(row, first + 9),
  }
}

/** Columns as the `list` statement has them. */
export function summary(row: Row): RecordSummary {
  return {
    identity: { key: textAt(row, 0), scope: textAt(row, 1) },
    state: stateAt(row, 2),
    generation: integerAt(row, 3),
    attempts: integerAt(row, 4),
    live: flagAt(row, 5),
    leftMs: integerAt(row, 6),
  }
}
