/** What the command line itself complains about: stable codes, as docs/cli.md lists them. Everything here ends with exit code 2. */
import { errorTable, isRetrysafeError } from '../index.js'

/** Code and what to do next. */
export const cliErrorTable = {
  USAGE: 'Run the command with --help.',
  STORE_NOT_NAMED:
    'Set DATABASE_URL, or pass --url postgres://…, or --store ./store.js, a module whose default export is the store.',
  SCHEME_UNKNOWN:
    'Pass a URL of a known kind, or --store ./store.js, a module whose default export is the store.',
  DRIVER_MISSING: 'Install it in the project that you run this in.',
  STORE_MODULE_INVALID: 'Export the store, or a function that gives it, as the default of the module.',
  ABILITY_MISSING: 'Not every store can do everything; docs/stores.md lists what each can.',
  STORE_UNAVAILABLE: 'Look whether the server runs, and whether URL, user and password are right.',
  UNEXPECTED: 'This is worth a report, with the command that led to it.',
} as const

export type CliErrorCode = keyof typeof cliErrorTable

export class CliError extends Error {
  readonly code: CliErrorCode
  readonly advice: string

  constructor(code: CliErrorCode, message: string, advice: string = cliErrorTable[code]) {
    super(message)
    this.name = 'CliError'
    this.code = code
    this.advice = advice
  }
}

export interface Complaint {
  readonly code: string
  readonly message: string
  readonly advice: string
}

/** Any error as something to print; the caller takes secrets out. */
export function complaintOf(error: unknown): Complaint {
  if (error instanceof CliError) return { code: error.code, message: error.message, advice: error.advice }
  if (!isRetrysafeError(error)) return said('UNEXPECTED', `something went wrong: ${textOf(error)}`)
  const { code, message, advice } = error
  if (code !== 'STORE_UNAVAILABLE') return { code, message: message.replace(` ${advice}`, ''), advice }
  // The table's words are for callers of a service; the operator needs what the server said.
  const [, detail] = /^ \((.*?)\)\. /.exec(message.slice(errorTable[code].title.length)) ?? []
  if (detail !== undefined)
    return { code, message: detail, advice: 'Run `retrysafe doctor`: it tells what else is wrong.' }
  return said(code, `the store could not be asked: ${textOf(error.cause)}`)
}

/** For what a store throws outside an instance, where nothing wraps it. */
export function unavailable(error: unknown): unknown {
  if (error instanceof CliError || isRetrysafeError(error)) return error
  return new CliError('STORE_UNAVAILABLE', `the store could not be asked: ${textOf(error)}`)
}

function said(code: CliErrorCode, message: string): Complaint {
  return { code, message, advice: cliErrorTable[code] }
}

/**
 * Node gives a refused connection as one error for each address, with an empty text of its own; a pool says that it has no connection, and keeps why
 * as the cause.
 */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(textOf).join('; ')
  if (error instanceof Error && error.message !== '')
    return error.cause === undefined ? error.message : `${error.message}: ${textOf(error.cause)}`
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : String(error)
}
