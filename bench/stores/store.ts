/** What a store brings to be compared: a server, and for each of its clients the same work with idempotency and without. */
import type { Retrysafe } from 'retrysafe'
import { order, scope } from '../work.js'

export interface StoreBench {
  /** What `--only` names. */
  readonly id: string
  /** The server's program, and the package of Debian that has it. */
  readonly program?: { readonly path: string; readonly debian: string }
  readonly clients: readonly ClientBench[]
  start(): Promise<Server>
}

export interface Server {
  /** Where clients find it: the URL of a server, or the folder of a file. */
  readonly at: string
  /** Name and version. */
  readonly what: string
  /** Pays what earlier blocks owe. */
  tidy?(): Promise<void>
  stop(): Promise<void>
}

export interface ClientBench {
  /** `--only` takes these too. */
  readonly id: string
  /** Packages of `test/peers` that it needs. */
  readonly peers: readonly string[]
  /** Why this Node cannot run it; absent or undefined where it can. */
  lacking?(): Promise<string | undefined>
  open(at: string, connections: number): Promise<Subject>
}

/** A client under comparison. Bare and safe ways share its connections. */
export interface Subject {
  /** The effect and the key commit together; absent where the store shares no transaction with the work. */
  readonly transaction?: Way
  /** The effect stands alone, and the key around it. */
  readonly lease: Way
  /** Reads a reply by the primary key it was kept under. */
  read(key: string): Promise<unknown>
  /** Keeps a reply for each of these keys, for {@link Subject.read}. */
  keep(keys: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** One piece of work, twice. */
export interface Way {
  bare(): Promise<unknown>
  safe(key: string): Promise<{ readonly replayed: boolean }>
}

export function transactionWay<Tx>(
  safe: Retrysafe<Tx>,
  bare: () => Promise<unknown>,
  work: (tx: Tx) => unknown,
): Way {
  return {
    bare,
    safe: (key) => safe.transaction({ scope, key, input: order }, ({ tx }) => work(tx)),
  }
}

/** The bare way is the work. */
export function leaseWay<Tx>(safe: Retrysafe<Tx>, bare: () => Promise<unknown>): Way {
  return { bare, safe: (key) => safe.run({ scope, key, input: order }, bare) }
}
