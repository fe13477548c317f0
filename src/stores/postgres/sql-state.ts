/** Reads a server's error. Only what carries an SQLSTATE was said by the server; everything else is a broken connection. */
import { fail } from '../../errors.js'
import { withoutValues } from './plain-error.js'

export interface ServerError {
  /** SQLSTATE. */
  readonly code: string
  readonly schema?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
}

/** The server's error, or undefined where the server did not speak. Node's `EPIPE` looks like an SQLSTATE: the severity tells them apart. */
export function serverError(error: unknown): ServerError | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error) || !('severity' in error))
    return undefined
  if (typeof error.code !== 'string' || !/^[0-9A-Z]{5}$/.test(error.code)) return undefined
  return error as ServerError
}

/** The SQLSTATE, or an empty string. */
export function sqlState(error: unknown): string {
  return serverError(error)?.code ?? ''
}

/** Whether the fault is the connection's or the server's state, so that another connection may do better. */
export function isConnectionFault(error: unknown): boolean {
  const code = sqlState(error)
  if (code === '' || code.startsWith('08') || code.startsWith('57P')) return true
  // 25006 and 0A000: a standby, once the primary. 26000, 42P05 and 0A000 again: prepared statements that changed under us.
  return ['25006', '0A000', '26000', '42P05'].includes(code)
}

/** Whether the statement met a rival and wrote nothing, so that it may be sent again as it is. */
export function isConflict(error: unknown): boolean {
  const code = sqlState(error)
  return code === '40001' || code === '40P01'
}

/** An error of a statement of ours, without the row that it quotes; says what to do about the one mistake that everybody makes once. */
export function explained(error: unknown, schema: string): unknown {
  const code = sqlState(error)
  const cause = withoutValues(error)
  if (code !== '42P01' && code !== '3F000') return cause
  return fail('STORE_UNAVAILABLE', {
    detail: `the tables are missing in schema "${schema}": run store.migrate(), or apply store.sql()`,
    cause,
  })
}

/** Whether our own primary key was violated; the user's constraints are none of our business (rule 7). */
export function isDuplicate(error: unknown, schema: string): boolean {
  const known = serverError(error)
  return (
    known?.code === '23505' &&
    known.schema === schema &&
    known.table === 'intent' &&
    known.constraint === 'intent_pkey'
  )
}
