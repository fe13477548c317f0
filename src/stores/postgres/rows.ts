/** Reads rows of the store's table; one that cannot be read is an error, never "absent" (rule 13). */
import { fail } from '../../errors.js'
import type { RecordState, RecordSummary, SeenRecord } from '../../store.js'
import type { Row } from './driver.js'

/** State numbers in the table; frozen with the first migration. */
export const stateNumbers = {
  running: 1,
  released: 2,
  done: 3,
  unknown: 4,
  dead: 5,
} as const satisfies Record<RecordState, number>

const stateNames = new Map(
  Object.entries(stateNumbers).map(([name, number]) => [String(number), name as RecordState]),
)

function corrupt(what: string) {
  return fail('RECORD_CORRUPT', { detail: what })
}

/** A column that must be there. */
export function textAt(row: Row | undefined, column: number): string {
  const value = row?.[column]
  if (value === null || value === undefined) throw corrupt(`column ${column} of the answer is empty`)
  return value
}

/** A whole number that JavaScript can hold exactly. */
export function integerAt(row: Row | undefined, column: number): number {
  const value = Number(textAt(row, column))
  if (!Number.isSafeInteger(value)) throw corrupt(`column ${column} of the answer is no safe integer`)
  return value
}

export function flagAt(row: Row | undefined, column: number): boolean {
  return textAt(row, column) === 't'
}

export function stateAt(row: Row | undefined, column: number): RecordState {
  const state = stateNames.get(textAt(row, column))
  if (state === undefined) throw corrupt('its state is not known to this version')
  return state
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
