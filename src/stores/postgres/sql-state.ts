/** Reads a server's error. Only what carries an SQLSTATE was said by the server; everything else is a broken connection. */
import { fail } from '../../errors.js'
import { saidByServer } from './inner-errors.js'
import { withoutValues } from './plain-error.js'

export interface ServerError {
  /** SQLSTATE. */
  readonly code: string
  readonly schema: string | undefined
  readonly table: string | undefined
  readonly column: string | undefined
  readonly constraint: string | undefined
}

/** The server's error, or undefined where the server did not speak. postgres.js writes `schema_name` for `schema`, and so on. */
export function serverError(error: unknown): ServerError | undefined {
  const said = saidByServer(error)
  if (said === undefined) return undefined
  const place = (name: string) => (said[name] ?? said[`${name}_name`]) as string | undefined
  return {
    code: said.code as string,
    schema: place('schema'),
    table: place('table'),
    column: place('column'),
    constraint: place('constraint'),
  }
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

/** Whether our own primary key was violated; the user's constraints are none of our business (rule 7). Prisma's adapter leaves the schema out. */
export function isDuplicate(error: unknown, schema: string): boolean {
  const known = serverError(error)
  return (
    known?.code === '23505' &&
    (known.schema ?? schema) === schema &&
    known.table === 'intent' &&
    known.constraint === 'intent_pkey'
  )
}
