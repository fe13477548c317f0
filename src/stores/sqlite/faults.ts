/** Reads an error of SQLite, whichever driver it comes through. */
import { fail, isRetrysafeError } from '../../errors.js'

/** Primary result codes that are told apart here; better-sqlite3 says the name, `node:sqlite` the number. */
const names = new Map([
  [3, 'PERM'],
  [5, 'BUSY'],
  [6, 'LOCKED'],
  [7, 'NOMEM'],
  [8, 'READONLY'],
  [10, 'IOERR'],
  [11, 'CORRUPT'],
  [13, 'FULL'],
  [14, 'CANTOPEN'],
  [15, 'PROTOCOL'],
  [19, 'CONSTRAINT'],
  [26, 'NOTADB'],
])

/** Somebody else has the file for a moment; whoever asks again may get it. */
const busy = new Set(['BUSY', 'LOCKED', 'PROTOCOL'])
/** The file, the disk or the machine, and nothing that the work has done. */
const broken = new Set(['PERM', 'NOMEM', 'READONLY', 'IOERR', 'CORRUPT', 'FULL', 'CANTOPEN', 'NOTADB'])

/** The primary result code by name: `BUSY` for `SQLITE_BUSY_SNAPSHOT`; undefined where SQLite did not speak. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown }
  if (code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number') return names.get(errcode & 0xff) ?? 'ERROR'
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code.split('_')[1] : undefined
}

const occupied = Symbol('retrysafe.occupied')

/** A shared connection is inside a transaction of somebody else: for us as if the file were busy. */
export function occupiedError(): Error {
  const text = 'the shared connection is inside a transaction that was begun elsewhere'
  return Object.assign(new Error(text), { [occupied]: true })
}

/** Whether a rival has the file. */
export function isBusy(error: unknown): boolean {
  return busy.has(codeOf(error) ?? '')
}

/** Whether trying again later is all there is to do: a rival has the file, or somebody else of the program is about something on the connection. */
export function isTaken(error: unknown): boolean {
  if (typeof error === 'object' && error !== null && occupied in error) return true
  // An iterator that is open somewhere: better-sqlite3 then refuses every statement that could write.
  if (error instanceof TypeError && error.message.includes('busy executing a query')) return true
  return isBusy(error)
}

/** Whether nobody can tell what became of a COMMIT that failed so: the disk may hold it all the same. */
export function isUnclear(error: unknown): boolean {
  return codeOf(error) === 'IOERR'
}

/** An error of a statement of ours, with the one mistake that everybody makes once said in words. Errors of ours pass. */
export function explained(error: unknown): unknown {
  if (isRetrysafeError(error)) return error
  if (error instanceof Error && /no such table: (?:main\.)?retrysafe_/.test(error.message)) {
    const detail = 'the tables are missing: run store.migrate(), or apply store.sql()'
    return fail('STORE_UNAVAILABLE', { detail, cause: error })
  }
  return ofStore(error)
}

/** What is the file's fault and not the work's: a full disk, a file that may only be read. Everything else passes untouched (rule 7). */
export function ofStore(error: unknown): unknown {
  const code = codeOf(error) ?? ''
  if (!broken.has(code)) return error
  return fail('STORE_UNAVAILABLE', { detail: `SQLite answered SQLITE_${code}`, cause: error })
}
