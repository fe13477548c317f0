/** Prisma 7, over a driver adapter. */
import { longestTimerMs } from '../../clock.js'
import { hasFunctions, type KnownTool, known, rowsOf } from './tool.js'

/** What is used of a client of Prisma; a type test holds it against a generated one. */
export interface PrismaDb {
  readonly $transaction: (...parameters: never[]) => Promise<unknown>
  readonly $queryRawUnsafe: (text: string) => PromiseLike<unknown>
  readonly $connect: unknown
}

/** What the work writes through: the client inside an interactive transaction, with the models and extensions of `prisma`. */
export type PrismaTx<Client extends PrismaDb> = Client['$transaction'] extends {
  (work: infer One, ...rest: never[]): unknown
  (work: infer Other, ...rest: never[]): unknown
}
  ? Given<One> | Given<Other>
  : never

type Given<Work> = Work extends (tx: infer Tx) => unknown ? Tx : never

interface Real {
  $transaction<Value>(work: (tx: Real) => Promise<Value>, terms: object): Promise<Value>
  $queryRawUnsafe(text: string): PromiseLike<unknown>
  readonly _activeProvider?: string
  /** What `@prisma/extension-read-replicas` adds: the client that asks no replica, which is late. */
  $primary?(): Real
}

/**
 * Prisma would roll back after 5 s and wait 2 s for a connection. How long work may take is `workTimeoutMs`, and how long a connection may
 * be waited for is `answerTimeoutMs`: one limit for each, whatever the tool.
 */
const terms = { timeout: longestTimerMs, maxWait: longestTimerMs }

export function prisma(handle: unknown): KnownTool | undefined {
  // The client inside a transaction has no `$connect`.
  if (!hasFunctions(handle, ['$transaction', '$queryRawUnsafe', '$connect'])) return undefined
  const given = handle as unknown as Real
  const client = hasFunctions(handle, ['$primary']) ? (given.$primary?.() ?? given) : given
  return known<Real>('Prisma', client._activeProvider, {
    transaction: (work) => client.$transaction(work, terms),
    query: async (tx, text) => rowsOf(await (tx ?? client).$queryRawUnsafe(text)),
  })
}
