/**
 * What the store needs of a client for PostgreSQL: sessions, and flights of several statements with one answer.
 *
 * A driver is one file. It knows no word of the protocol; it must keep three promises: statements of a flight run in order and
 * the first failure skips the rest; a session's connection always has an error listener; a session is given back once.
 */

/** A statement with a name that follows from its text, for servers and poolers that allow prepared ones. */
export interface Statement {
  readonly text: string
  readonly name: string
}

/** A parameter as it goes over the wire: text, bytes or NULL. */
export type Value = string | Buffer | null

export interface Call {
  readonly statement: Statement
  readonly values: readonly Value[]
}

/** Columns by position, as the server's text. */
export type Row = readonly (string | null)[]

export interface Result {
  readonly rows: readonly Row[]
  /** The command's tag: `COMMIT`, say. */
  readonly tag: string
}

export interface Failure {
  /** Which statement of the flight failed; those after it did not run. */
  readonly index: number
  readonly error: unknown
}

/** How a flight ended. Failing is a value here, because the caller's next move depends on which statement it was. */
export type Flown =
  | { readonly results: readonly Result[]; readonly failure?: never }
  | { readonly failure: Failure; readonly results?: never }

/** What the work writes through, watched over. */
export interface Guarded<Tx> {
  readonly tx: Tx
  used(): boolean
  /** From now on every use throws; resolves when the statements in flight have been answered. */
  settle(): Promise<void>
  /** Runs something of ours between the statements in flight and those that the work sends from now on. */
  between<T>(run: () => Promise<T>): Promise<T>
}

/** A connection checked out. */
export interface Connection {
  /** Sends all statements at once with one Sync behind them; never throws. */
  flight(calls: readonly Call[]): Promise<Flown>
  /** Gives a healthy connection back. */
  release(): void
  /** Closes the connection; the pool forgets it. */
  destroy(): void
}

/** A connection that work may write through. */
export interface Session<Tx> extends Connection {
  guard(): Guarded<Tx>
  /** Why the connection is gone, once it is. */
  lost(): unknown
  onLost(listener: (cause: unknown) => void): void
}

/** Where statements without work come from. */
export interface Connections {
  acquire(): Promise<Connection>
  /** A connection outside the pool that does not keep the process alive, where the client can open one. */
  readonly dedicate?: () => Promise<Connection>
}

export interface Driver<Tx> extends Connections {
  acquire(): Promise<Session<Tx>>
  /** The session behind the caller's own open transaction; it is neither released nor destroyed. */
  adopt(tx: Tx): Session<Tx>
  /** Whether a session can end its transaction and begin another: not where a tool's own function runs it. */
  readonly beginsAnew: boolean
  /** Whether it tells how the server has answered a COMMIT: a tool hides that it was with ROLLBACK, and no error (rule 21). */
  readonly tellsEnd: boolean
}

/** Binds values to a statement. */
export function call(statement: Statement, ...values: readonly Value[]): Call {
  return { statement, values }
}

/** Bytes for the wire, without a copy. */
export function wire(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
