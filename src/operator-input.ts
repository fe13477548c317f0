/**
 * Checks what an operator says before a store hears of it: a word that is wrong is `OPTION_INVALID`, never a database's own complaint.
 */
import { fail, type RetrysafeError } from './errors.js'
import { checkKey, recordScope } from './key.js'
import type { Outcome, StoredReply } from './outcome.js'
import { isBodyless, isHeaderName, isHeaderValue, isNeverKept } from './reply-headers.js'
import type { Identity, RecordState, Verdict } from './store.js'

/** Records in one list. More is a report, which is better asked of the database itself. */
const longestList = 10_000
const defaultList = 100

const states: ReadonlySet<unknown> = new Set<RecordState>(['running', 'released', 'done', 'unknown', 'dead'])

export interface Filter {
  readonly states?: readonly RecordState[]
  readonly limit: number
}

export function checkFilter(given: unknown): Filter {
  const { states: wanted, limit = defaultList } = membersOf(given === undefined ? {} : given, 'the filter')
  if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > longestList) {
    throw wrong(`limit must be a whole number from 1 to ${longestList}`)
  }
  if (wanted === undefined) return { limit: Number(limit) }
  if (!Array.isArray(wanted) || wanted.some((state) => !states.has(state))) {
    throw wrong(`states must be a list of ${[...states].join(', ')}`)
  }
  return { states: wanted, limit: Number(limit) }
}

export function checkName(given: unknown): Identity {
  const { key, scope, operation } = membersOf(given, 'the name of a record')
  return { key: checkKey(key), scope: recordScope(scope as string, operation as string | undefined) }
}

/** A record and the generation that was seen (rule 3). */
export function checkVerdict(given: unknown): Verdict {
  const { generation } = membersOf(given, 'the name of a record')
  if (!Number.isSafeInteger(generation) || Number(generation) < 0) {
    throw wrong('generation must be the whole number that list and show tell')
  }
  return { identity: checkName(given), generation: Number(generation) }
}

/** What the work answered, as an operator says; undefined: it did not take effect. */
export function checkResolution(given: unknown): Outcome | undefined {
  const { done, value, reply } = membersOf(given, 'the resolution')
  if (typeof done !== 'boolean') throw wrong('done must be true or false')
  if (!done) return undefined
  if (reply === undefined) return { kind: 'value', value }
  if (value !== undefined) throw wrong('a resolution has a value or a reply, not both')
  return { kind: 'reply', reply: checkStoredReply(reply) }
}

/** As a reply of a handler is checked and kept: no cookie, no date, nothing that belongs to one connection (rule 9). */
function checkStoredReply(given: unknown): StoredReply {
  const { status, headers = [], body = new Uint8Array() } = membersOf(given, 'reply')
  // A 304 leaves out what it is about: another caller, without that cache, could not use it.
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599 || status === 304) {
    throw wrong('the status of a reply must be a whole number from 200 to 599, and not 304')
  }
  if (!(body instanceof Uint8Array)) throw wrong('the body of a reply must be bytes')
  if (body.length > 0 && isBodyless(Number(status))) throw wrong(`a reply with status ${status} has no body`)
  if (!Array.isArray(headers)) throw wrong('the headers of a reply must be a list of [name, value]')
  const kept = headers.map(checkHeader).filter(([name]) => !isNeverKept(name))
  return { status: Number(status), headers: kept, body }
}

function checkHeader(given: unknown): readonly [name: string, value: string] {
  const [name, value] = Array.isArray(given) ? given : []
  if (isHeaderName(name) && typeof value === 'string' && isHeaderValue(value))
    return [name.toLowerCase(), value]
  throw wrong('each header of a reply must be [name, value], with characters that a header may hold')
}

function membersOf(given: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof given === 'object' && given !== null) return given as Readonly<Record<string, unknown>>
  throw wrong(`${what} must be an object`)
}

function wrong(detail: string): RetrysafeError {
  return fail('OPTION_INVALID', { detail })
}
