/**
 * What a store needs of an ORM or a query builder, and what can be known of it by its shape. Nothing here knows a database: a store says which
 * dialects are its own.
 */

/** The only level that is asked of a tool, where it must be said before its transaction begins. */
export type Isolation = 'read committed'

/** The rows of a statement, or how many rows it has changed where the server says so by itself. */
export type SqlAnswer = readonly object[] | { readonly affectedRows: number }

/** A tool that can run a transaction and a statement. */
export interface SqlTool<Tx> {
  transaction<Value>(work: (tx: Tx) => Promise<Value>, isolation?: Isolation): Promise<unknown>
  query(tx: Tx | undefined, text: string): Promise<SqlAnswer>
  /**
   * Makes a transaction ask before each statement that it sends: for a tool that by itself would send one on a connection that serves somebody
   * else by then. Asking throws once the attempt is over.
   */
  readonly seal?: (tx: Tx, ask: () => void) => Tx
  /** Methods of its transaction that end it and give its connection back. */
  readonly ends?: readonly string[]
}

/** A tool that was told by its shape. */
export interface KnownTool {
  /** As its documentation writes it. */
  readonly name: string
  /** What the tool calls its database; undefined where it cannot be told. */
  readonly dialect: string | undefined
  readonly tool: SqlTool<unknown>
  /** Why this one cannot be used as it is. */
  readonly unfit: string | undefined
}

/** What its transaction is stays with the tool: what a store is typed by is derived from the handle. */
export function known<Tx>(
  name: string,
  dialect: string | undefined,
  tool: SqlTool<Tx>,
  unfit?: string,
): KnownTool {
  return { name, dialect, tool: tool as SqlTool<unknown>, unfit }
}

/** Whether a handle has functions of these names; also one that is a function itself. */
export function hasFunctions<Name extends string>(
  handle: unknown,
  names: readonly Name[],
): handle is Record<Name, (...parameters: unknown[]) => unknown> {
  if ((typeof handle !== 'object' && typeof handle !== 'function') || handle === null) return false
  return names.every((name) => typeof (handle as Record<string, unknown>)[name] === 'function')
}

/** The rows of an answer: drivers give them as a list, or as the member `rows` of an object. */
export function rowsOf(answer: unknown): readonly object[] {
  if (Array.isArray(answer)) return answer
  const { rows } = answer as { readonly rows?: unknown }
  // A driver gives none where a statement gives no rows.
  return Array.isArray(rows) ? rows : []
}

/** The answer of mysql2: rows or what was changed, and beside them the columns. */
export function firstOf(answer: unknown): SqlAnswer {
  const [first] = answer as readonly [SqlAnswer]
  return first
}
