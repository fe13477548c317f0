/** Reads rows of the store's table; one that cannot be read is an error, never "absent" (rule 13). */
import type { RecordSummary, SeenRecord } from '../../store.js'
import { corrupt, integerAt, numberOf, stateAt, stateNumbers, textAt } from '../columns.js'
import type { Row } from './driver.js'

export { integerAt, numberOf, stateAt, stateNumbers, textAt }

function flagAt(row: Row | undefined, column: number): boolean {
  return integerAt(row, column) !== 0
}

/** Bytes that the server wrote as hexadecimal digits. */
export function bytesAt(row: Row | undefined, column: number): Buffer {
  return Buffer.from(textAt(row, column), 'hex')
}

function ownerAt(row: Row, column: number): string {
  const digits = textAt(row, column).toLowerCase()
  if (!/^[0-9a-f]{32}$/.test(digits)) throw corrupt('its owner is no token')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Columns as `seenColumns` in statements.ts lists them. */
export function seenRecord(row: Row): SeenRecord {
  const state = stateAt(row, 0)
  const fingerprint = bytesAt(row, 4)
  if (fingerprint.length === 0) throw corrupt('its fingerprint is empty')
  if (state === 'done' && typeof row[5] !== 'string') throw corrupt('it is done without an outcome')
  return {
    state,
    owner: ownerAt(row, 1),
    generation: integerAt(row, 2),
    attempts: integerAt(row, 3),
    fingerprint,
    ...(state === 'done' ? { outcome: bytesAt(row, 5) } : {}),
    hasSteps: flagAt(row, 6),
    live: flagAt(row, 7),
    leftMs: integerAt(row, 8),
    storeNowMs: integerAt(row, 9),
  }
}

/** Columns as the `list` statement has them. */
export function summary(row: Row): RecordSummary {
  return {
    identity: { key: bytesAt(row, 0).toString('utf8'), scope: bytesAt(row, 1).toString('utf8') },
    state: stateAt(row, 2),
    generation: integerAt(row, 3),
    attempts: integerAt(row, 4),
    live: flagAt(row, 5),
    leftMs: integerAt(row, 6),
  }
}
