/**
 * What is used of postgres.js (`postgres` 3.4). The public part is held against the real types by a type test; the inner part is what
 * `sql.begin` itself rests on, and every flight checks that it still behaves so.
 */

/** What is used of a client of postgres.js. */
export interface PostgresJs {
  readonly options: {
    readonly prepare: boolean
    readonly transform: { readonly row: { readonly from: unknown } }
  }
  readonly begin: (...parameters: never[]) => unknown
  readonly unsafe: (...parameters: never[]) => unknown
  readonly reserve: () => unknown
  readonly CLOSE: object
}

/** What the work writes through: the `TransactionSql` of the client that was passed in, with its types. */
export type PostgresJsTx<Sql extends PostgresJs> = Parameters<Sql['begin']>[1] extends (
  tx: infer Tx,
) => unknown
  ? Tx
  : never

/** A query: nothing is sent before it is first awaited; then it is handed to its handler, once. */
export interface Query extends PromiseLike<unknown> {
  handler: (query: Query) => unknown
  canceller: ((query: Query) => unknown) | null
  strings: readonly string[]
  readonly args: readonly unknown[]
  options: { readonly simple?: boolean; readonly onexecute?: (wire: Wire) => unknown }
  /** The server's process once it was sent. */
  readonly state: { readonly pid: number | null; readonly secret: number | null } | null
  readonly active: boolean
  readonly cancelled: unknown
  resolve: (value: unknown) => unknown
  reject: (error: unknown) => unknown
  cursorFn?: ((rows: unknown) => unknown) | undefined
  forEachFn?: (row: readonly (Buffer | null)[]) => void
  catch(listener: (error: unknown) => void): unknown
  raw(): this
}

/** A connection of the pool. */
export interface Wire {
  /** Sends; falsy when nothing may be sent behind it before the connection is ready again. */
  execute(query: Query): unknown
  /** Rejects what is under way and closes the socket. */
  terminate(): void
  /**
   * Whose the connection is; called whenever all that was sent is answered. With `release`, it stays so until it is taken back; without,
   * the pool takes the connection back by itself as soon as no transaction is open.
   */
  reserved: Reservation | null
  onclose: ((cause: unknown) => void) | null
  queue: { remove(wire: Wire): unknown; push(wire: Wire): unknown }
}

export type Reservation = (() => void) & { release: boolean }

/** `sql` or a transaction's: makes queries. */
export interface Maker {
  (first: unknown, ...rest: readonly unknown[]): unknown
  unsafe(text: string, values?: readonly unknown[], options?: object): Query
  file(path: unknown, ...rest: readonly unknown[]): Query
  readonly types: unknown
  array(...parameters: readonly unknown[]): unknown
  json(value: unknown): unknown
}

/** A query, and neither a helper (`sql(rows)`) nor anything else that a maker gives. */
export function isQuery(made: unknown): made is Query {
  return made instanceof Promise && 'handler' in made && 'strings' in made
}
