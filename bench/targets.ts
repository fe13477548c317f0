/** What is to be reached; `--check` holds a run against it. */

type AtConcurrency = Readonly<Record<number, number>>

function always(ratio: number): AtConcurrency {
  return { 1: ratio, 8: ratio, 16: ratio, 32: ratio }
}

/** Throughput against the bare way, by scenario and concurrency: at least. */
export const ratioTargets: Readonly<Record<string, AtConcurrency>> = {
  transaction: { 1: 0.8, 8: 0.72, 32: 0.65 },
  'js-transaction': { 1: 0.8, 8: 0.65, 32: 0.55 },
  'replay-retry': always(0.8),
  'replay-cache': always(6),
  'replay-transaction': always(0.55),
  'replay-lease': always(0.8),
  express: always(0.85),
}

/** Bytes on disk for a key with a reply of 250 bytes, indexes included: at most. */
export const byteTargets: Readonly<Record<string, number>> = {
  transaction: 520,
  'transaction-text': 600,
}

/** Beyond the bare transaction, per operation in transaction mode: at most. */
export const countTargets = {
  roundTrips: 0,
  commits: 0,
  rowsInserted: 1,
  rowsUpdated: 0,
  rowsDead: 0,
} as const
