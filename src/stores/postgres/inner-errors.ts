/**
 * The server's error inside a tool's error. Tools wrap what their driver raises, and each keeps it elsewhere: as `cause` (Drizzle), `original`
 * (Sequelize), `meta.driverAdapterError` (Prisma), or with its members copied (TypeORM, MikroORM).
 */

type Said = Readonly<Record<string, unknown>>

/** Errors in errors that are looked into: a tool wraps its driver's, and a tool's tool once more. */
const depth = 4

/** An error and those inside it, from the outside in. */
export function* innerErrors(error: unknown): Generator<Said> {
  let found = error
  for (let level = 0; level < depth && typeof found === 'object' && found !== null; level += 1) {
    yield found as Said
    const { cause, original, meta } = found as Said
    found = cause ?? original ?? (meta as Said | undefined)?.driverAdapterError
  }
}

/** What the server said; undefined where it did not speak. Node's `EPIPE` looks like an SQLSTATE: the severity tells them apart. */
export function saidByServer(error: unknown): Said | undefined {
  for (const found of innerErrors(error)) {
    if (isSqlState(found.code) && typeof found.severity === 'string') return found
    if (isSqlState(found.originalCode)) return ofAdapter(found)
  }
  return undefined
}

function isSqlState(code: unknown): boolean {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)
}

/** Prisma's driver adapter translates what it knows, and leaves names out; the first name that the message quotes is the column. */
function ofAdapter({ originalCode, originalMessage, constraint, table }: Said): Said {
  const message = String(originalMessage)
  const [, quoted] = /["«»„“]([^"«»„“”]+)["«»“”]/.exec(message) ?? []
  return {
    message,
    code: originalCode,
    severity: 'ERROR',
    table,
    constraint: (constraint as Said | undefined)?.index,
    ...(originalCode === '23502' && { column: quoted }),
  }
}
