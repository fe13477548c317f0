/** How each named moment of the library is reached: by which request, after which preparation, and what is then not promised. */
import type { Fault, FaultPoint } from 'retrysafe/testing'
import type { Ledger } from './service.js'

export interface FailpointCase {
  readonly names: readonly string[]
  readonly path: string
  readonly body?: object
  /** Makes what the attempt is to find, with a first answer that stands. */
  prepare?(ledger: Ledger, key: string): Promise<void>
  readonly fault?: readonly [FaultPoint, Fault]
  /** How every later attempt ends. Default: a success. */
  readonly end?: 'unknown'
  /** Invariants that this way does not promise. */
  readonly excused?: readonly string[]
}

/** Work outside `commit` is at least once. */
const atLeastOnce = ['I1', 'I5']

/** A done record, which the case's own first request has made, becomes one whose owner is gone. */
async function orphan(ledger: Ledger, key: string): Promise<void> {
  await ledger.pool.query(
    `update retrysafe.intent set state = 1, outcome = null, ends_at = clock_timestamp() - interval '1 s' where key = $1`,
    [key],
  )
}

/** The same, and its effect never came to be. */
async function orphanWithoutEffect(ledger: Ledger, key: string): Promise<void> {
  await orphan(ledger, key)
  await ledger.pool.query('delete from effects where key = $1', [key])
}

export const failpointCases: readonly FailpointCase[] = [
  {
    names: ['begin', 'begun', 'work', 'worked', 'save', 'saved'].map((name) => `transaction.${name}`),
    path: '/transaction',
  },
  { names: ['transaction.forget', 'transaction.forgotten'], path: '/transaction', body: { failFirst: true } },
  { names: ['transaction.readBack'], path: '/transaction', fault: ['save', 'loseAnswer'] },
  {
    names: ['transaction.abandon', 'transaction.abandoned'],
    path: '/transaction-unknown',
    prepare: orphan,
    end: 'unknown',
  },
  // The copied record has the answer of the one it was copied from.
  { names: ['transaction.adopt'], path: '/transaction', body: { rival: 'rival' }, excused: ['I9'] },
  { names: ['http.admitted', 'http.performed', 'http.answer'], path: '/existing' },
  {
    names: ['claim', 'claimed', 'work', 'worked', 'complete', 'completed'].map((name) => `lease.${name}`),
    path: '/plain',
    excused: atLeastOnce,
  },
  {
    names: ['lease.release', 'lease.released'],
    path: '/plain',
    body: { failFirst: true },
    excused: atLeastOnce,
  },
  { names: ['lease.adopt'], path: '/plain', body: { stolen: true }, excused: atLeastOnce },
  { names: ['lease.takeOver', 'lease.takenOver'], path: '/lease', prepare: orphanWithoutEffect },
  {
    names: ['lease.abandon', 'lease.abandoned'],
    path: '/lease-unknown',
    prepare: orphan,
    end: 'unknown',
  },
  { names: ['lease.renew', 'lease.renewed'], path: '/lease', body: { workMs: 300 } },
  { names: ['open', 'opened', 'save', 'saved'].map((name) => `commit.${name}`), path: '/lease' },
  { names: ['commit.readBack', 'commit.renamed'], path: '/lease', fault: ['save', 'failBefore'] },
  {
    names: ['claim', 'claimed', 'work', 'save', 'saved'].map((name) => `within.${name}`),
    path: '/within',
  },
]

/** Moments of the sweeper, which has no key. */
export const sweeperNames: readonly string[] = ['sweep.batch', 'sweep.swept']
