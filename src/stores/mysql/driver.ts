/**
 * What the store needs of a client for MySQL or MariaDB: connections that run one statement at a time.
 *
 * A driver is one file. It knows no word of the protocol; it must keep three promises: a statement is answered before the next
 * one of the same connection is begun, or in order; a checked-out connection always has an error listener; it is given back once.
 */

/** Columns by position, as the text of what the client made of them. */
export type Row = readonly (string | null)[]

export interface Answer {
  readonly rows: readonly Row[]
  /** Rows that a write has changed. Every write of ours changes what it finds, so that `CLIENT_FOUND_ROWS` makes no difference. */
  readonly affected: number
}

/** What the work writes through, watched over. */
export interface Guarded<Tx> {
  readonly tx: Tx
  used(): boolean
  /** From now on every use throws; resolves when the statements in flight have been answered. */
  settle(): Promise<void>
}

/** A connection checked out. */
export interface Connection {
  /** Sends one statement, its values already in its text. */
  run(text: string): Promise<Answer>
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
  /** A tool begins by itself, at READ COMMITTED: no statement can go in front, and without a transaction two statements are on two connections. */
  readonly begins?: 'itself'
  acquire(): Promise<Session<Tx>>
  /** The session behind the caller's own open transaction; it is neither released nor destroyed. */
  adopt(tx: Tx): Session<Tx>
}

/**
 * Sends statements one behind the other without waiting: one round trip where the client pipelines, as MariaDB's does. All of them run, whatever becomes of the first, so
 * it is for what does no harm then.
 */
export async function inOneGo(connection: Connection, texts: readonly string[]): Promise<readonly Answer[]> {
  const ends = await Promise.allSettled(texts.map((text) => connection.run(text)))
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason
    return end.value
  })
}

/** The text of a value that a client gives: number, bigint, text or bytes, by its type and its options. */
export function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return Buffer.isBuffer(value) ? value.toString('latin1') : String(value)
}
