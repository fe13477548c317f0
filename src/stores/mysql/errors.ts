/** Reads an error of a client. Only what carries a server's number was said by the server; everything else is a broken connection. */
import { fail, isRetrysafeError } from '../../errors.js'

/** Errors in errors that are looked into: a tool wraps its driver's. */
const depth = 4

interface Said {
  readonly errno?: unknown
  readonly sqlState?: unknown
  readonly sqlMessage?: unknown
  readonly code?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  /** Where TypeORM and Sequelize have it. */
  readonly driverError?: unknown
  readonly original?: unknown
}

/** The number of a server's error, or 0 where the server did not speak. 2000 to 2999 and 45000 and above are made by clients. */
export function errno(error: unknown): number {
  const said = innerErrors(error).find(isServers)
  return said === undefined ? 0 : Number(said.errno)
}

function isServers({ errno: number, sqlState }: Said): boolean {
  const isItsOwn = typeof number === 'number' && number >= 1000 && number < 45_000
  return isItsOwn && Math.trunc(number / 1000) !== 2 && typeof sqlState === 'string'
}

/** The error, and what it was made of. */
function innerErrors(error: unknown): readonly Said[] {
  const errors: Said[] = []
  for (let found = error; errors.length < depth && typeof found === 'object' && found !== null; ) {
    const inner: Said = found
    errors.push(inner)
    found = inner.cause ?? inner.driverError ?? inner.original
  }
  return errors
}

/**
 * Numbers of a server that refuses everybody, or this connection: too many connections (1040, 1203), a host that is shut out (1129), shutting down
 * (1053), killed (1152, 1927, 4031), read-only (1290, 1792, 1836), a broken packet (1156 to 1161).
 */
const faults = new Set([
  1040, 1053, 1129, 1152, 1156, 1157, 1158, 1159, 1160, 1161, 1203, 1290, 1792, 1836, 1927, 4031,
])

/** Whether the fault is the connection's or the server's state, so that another connection may do better. */
export function isConnectionFault(error: unknown): boolean {
  if (isRetrysafeError(error)) return false
  const number = errno(error)
  return number === 0 || faults.has(number)
}

/** Whether our own primary key refused the row: asked only of inserts of ours, whose table has no other. */
export function isDuplicate(error: unknown): boolean {
  return errno(error) === 1062
}

/** Whether a row is locked and was not waited for: 1205 in MariaDB, 3572 in MySQL. */
export function isLocked(error: unknown): boolean {
  const number = errno(error)
  return number === 1205 || number === 3572
}

/** Whether a savepoint is gone, and its transaction with it. */
export function isNoSavepoint(error: unknown): boolean {
  return errno(error) === 1305
}

/** Deadlock, a lock that did not come in time, a row that changed since the snapshot, and a cluster's refusal to certify. */
const conflicts = new Set([1020, 1205, 1213, 3101, 3572])

/** Whether the statement met a rival. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(errno(error))
}

/**
 * An error of a statement of ours, without its text: clients put the whole statement, key and outcome included, into `sql` and some into
 * the message. Says what to do about the mistakes that everybody makes once.
 */
export function explained(error: unknown, schema: string): unknown {
  const cause = withoutValues(error)
  switch (errno(error)) {
    case 1049:
    case 1146:
      return fail('STORE_UNAVAILABLE', {
        detail: `the tables are missing in the database \`${schema}\`: run store.migrate(), or apply store.sql()`,
        cause,
      })
    case 1044:
    case 1142:
      return fail('STORE_UNAVAILABLE', {
        detail: `the account may not do this in the database \`${schema}\`: grant it, or name another with { schema }`,
        cause,
      })
    default:
      return cause
  }
}

/** The error with its statement left out. */
export function withoutValues(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || !('sql' in error || 'sqlMessage' in error)) return error
  const { message, sqlMessage, code, sqlState } = error as Said
  const [firstLine] = String(sqlMessage ?? message).split('\n')
  const told = errno(error) === 1062 ? 'a record of this key is there' : firstLine
  const number = (error as Said).errno
  return Object.assign(new Error(told), { code, errno: number, sqlState })
}

/** What a tool has made of the failure of a statement of ours, without the statement: its values stand in it. */
export function plainly(error: unknown, text?: string): unknown {
  if (isRetrysafeError(error)) return error
  const inner = innerErrors(error)
  const said = inner.find(isServers)
  if (said !== undefined) return withoutValues(said)
  const { message, code } = inner.at(-1) ?? { message: 'the tool has failed' }
  const told = text === undefined ? String(message) : String(message).replaceAll(text, () => '…')
  return Object.assign(new Error(told), { code })
}
