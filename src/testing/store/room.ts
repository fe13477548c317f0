/**
 * The room a case runs in: a client of the store, more of them on demand, and everything closed when the case ends.
 */
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../clock.js'
import type { Options } from '../../options.js'
import { type Retrysafe, retrysafe } from '../../retrysafe.js'
import type { Identity, Operating, Store, Sweeping, Transactions } from '../../store.js'
import { present } from '../check.js'
import type { EffectLedger, OwnTransaction, StoreHarness } from './harness.js'
import { type Processes, startProcesses } from './processes.js'

/**
 * A caller whose clock is far ahead of every store's, in ms since 1970 (the year 2100): it never narrows retention, so the store's clock
 * alone is left to judge (rule 5).
 */
export const aheadMs = Date.UTC(2100, 0, 1)

export interface Room<Tx extends object> {
  readonly store: Store<Tx>
  /** Another client of the same ledger. */
  another(): Promise<Store<Tx>>
  advance(ms: number): Promise<void>
  transactions(of?: Store<Tx>): Transactions<Tx>
  sweeping(of?: Store<Tx>): Sweeping
  operating(): Operating
  ledger(): EffectLedger<Tx>
  own(): Promise<OwnTransaction<Tx>>
  plant(identity: Identity, shape: 'dead' | 'steps'): Promise<void>
  /** Whether transactions may meet a rival: see the harness. */
  readonly mayConflict: boolean
  /** Whether nothing can be written beside an open transaction: see the harness. */
  readonly oneWriter: boolean
  /** Processes of their own, each with a client of its own. */
  processes(count: number): Promise<Processes>
  /** An instance on the store, or on another client of it. */
  safe(options?: Options, of?: Store<Tx>): Retrysafe<Tx>
}

/** Runs the body in a room of its own. */
export async function inRoom<Tx extends object>(
  harness: StoreHarness<Tx>,
  body: (room: Room<Tx>) => Promise<void>,
): Promise<void> {
  /** Last in, first out: an instance ends before its client. */
  const endings: (() => unknown)[] = []

  async function another(): Promise<Store<Tx>> {
    const { store, close } = await harness.open()
    endings.unshift(close)
    return store
  }

  try {
    const store = await another()
    await body({
      store,
      another,
      advance: async (ms) => harness.advance(ms),
      transactions: (of = store) => present('the ability transactions', of.transactions),
      sweeping: (of = store) => present('the ability sweeping', of.sweeping),
      operating: () => present('the ability operating', store.operating),
      ledger: () => present('the ledger', harness.ledger),
      own: async () => present('a transaction of its own', await harness.own?.()),
      plant: async (identity, shape) => harness.plant?.(identity, shape),
      mayConflict: harness.mayConflict ?? false,
      oneWriter: harness.oneWriter ?? false,
      processes: async (count) => {
        const processes = await startProcesses(present('the module', harness.processes), count)
        endings.unshift(processes.stop)
        return processes
      },
      safe: (options = {}, of = store) => {
        const safe = retrysafe<Tx>({ ...options, store: of, clock: { ...systemClock, now: () => aheadMs } })
        endings.unshift(safe.close)
        return safe
      },
    })
  } finally {
    for (const end of endings) await end()
  }
}

/** An identity that no other case has used. */
export function fresh(): Identity {
  return { key: `case-${randomUUID()}`, scope: 'suite' }
}
