/** What the tables of all SQL stores have in common: numbers of states, and columns that are there or are an error, never "absent" (rule 13). */
import { fail } from '../errors.js'
import type { RecordState } from '../store.js'

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

export function corrupt(what: string) {
  return fail('RECORD_CORRUPT', { detail: what })
}

/** The state of a number, as the server or the client writes it. */
export function stateOf(number: string | number): RecordState {
  const state = stateNames.get(String(number))
  if (state === undefined) throw corrupt('its state is not known to this version')
  return state
}

/** For the text of a statement, so nothing but a number of ours may come out. */
export function numberOf(state: RecordState): number {
  if (Object.hasOwn(stateNumbers, state)) return stateNumbers[state]
  throw fail('OPTION_INVALID', { detail: 'there is no such state of a record' })
}

/** Columns by position, as the server's text. */
type Row = readonly (string | null)[]

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

export function stateAt(row: Row | undefined, column: number): RecordState {
  return stateOf(textAt(row, column))
}
