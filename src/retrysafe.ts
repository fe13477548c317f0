/**
 * `retrysafe()`: puts a store, options and the runners together, and checks at once whether they fit.
 */
import type { Answer, Call, Format, LeaseAttempt, TransactionAttempt } from './attempt.js'
import { createCache } from './cache.js'
import { type Clock, type Random, systemClock, systemRandom } from './clock.js'
import { type Core, checkSurfaceOptions, type SurfaceOptions, surfaceOptions, withCore } from './core.js'
import type { Engine } from './engine.js'
import { fail } from './errors.js'
import { createEvents, type EventMap, type EventName, eventNames } from './events.js'
import { createHabit } from './habit.js'
import { type Intent, resolveIntent } from './intent.js'
import { createKeeper } from './lease.js'
import { runLease } from './lease-run.js'
import type { LeaseWork } from './lease-work.js'
import { createOperator, type Operator } from './operator.js'
import { checkOptions, type Mode, type Options, optionNames, type Policy, resolvePolicy } from './options.js'
import { createSharing } from './sharing.js'
import type { Store } from './store.js'
import { createSweeper } from './sweeper.js'
import { runTransaction, type TransactionWork } from './transaction.js'
import { valueFormat } from './value-format.js'
import { createWithin } from './within.js'

/** Options of {@link retrysafe}. */
export interface RetrysafeOptions<Tx> extends Options, SurfaceOptions {
  /** Where records live: `postgres(pool)`, `memory()`. */
  readonly store: Store<Tx>
  /** How often {@link Retrysafe.start} sweeps, in ms. Default one minute. */
  readonly sweepEveryMs?: number
  /**
   * How many bytes of finished outcomes to keep in this process, for replays that ask no store. Default 0: none. An outcome is kept
   * once its own commit is durable, and not beyond its retention.
   */
  readonly cacheBytes?: number
  /** For tests: time, and chance. */
  readonly clock?: Clock
  readonly random?: Random
}

/** An instance: the promise, and the tools to look after it. */
export interface Retrysafe<Tx> extends Operator {
  /**
   * Runs the work once in one database transaction with the key and the outcome, or answers with what an earlier attempt stored.
   *
   * Costs no more round trips than the bare transaction. Throws `IN_PROGRESS`, `KEY_REUSED`, `STORE_UNAVAILABLE` (send it again), and what the work throws.
   *
   * @example
   * ```ts
   * const { value, replayed } = await safe.transaction({ scope: user.id, key, input }, async ({ tx }) => {
   *   const { rows } = await tx.query('insert into orders (total) values ($1) returning id', [input.total])
   *   return rows[0]
   * })
   * ```
   */
  transaction<Value>(
    intent: Intent,
    work: (attempt: TransactionAttempt<Tx>) => Value | Promise<Value>,
  ): Promise<Answer<Value>>
  /**
   * Runs the work under a lease, outside any transaction; for work that calls other systems. Effects are covered through `commit`; anything
   * else the work does is at least once.
   *
   * Costs two round trips and two commits beyond the work: the claim, and the outcome. With `commit` the second is its transaction: BEGIN in
   * one round trip, your statements, outcome and COMMIT in one. Renewals go every third of `leaseMs`, one statement for all leases of the
   * process. Throws as {@link Retrysafe.transaction} does, and `LEASE_LOST`, `OUTCOME_UNKNOWN`.
   *
   * @example
   * ```ts
   * const { value } = await safe.run({ scope, key, input }, async ({ commit, signal }) => {
   *   const charge = await provider.charge(input, { reference: `${scope}:${key}`, signal })
   *   return commit(async (tx) => {
   *     await tx.query('insert into payments (charge_id) values ($1)', [charge.id])
   *     return { chargeId: charge.id }
   *   })
   * })
   * ```
   */
  run<Value>(
    intent: Intent,
    work: (attempt: LeaseAttempt<Tx>) => Value | Promise<Value>,
  ): Promise<Answer<Value>>
  /**
   * Runs the work once inside a transaction that the caller has opened and will commit. A refusal leaves that transaction usable; one intent
   * runs at a time; nothing is true, and no event is emitted, before the caller's COMMIT.
   *
   * Costs three round trips beyond the work (savepoint and look-up, claim, outcome), one row version that is dead at once, and no commit.
   *
   * @throws `IN_PROGRESS`, `KEY_REUSED`, `NOT_REPLAYABLE`; `TRANSACTION_ABORTED` when the work has undone our savepoint; `OPTION_INVALID` on a store
   * without transactions, for a `tx` that it does not know, and inside another `within` of the same `tx`; what the work throws; the driver's own
   * error when the transaction is lost.
   *
   * @example
   * ```ts
   * const client = await pool.connect()
   * await client.query('begin')
   * await safe.within(client, { scope, key }, ({ tx }) => tx.query("insert into outbox (address) values ('ada')"))
   * await client.query('commit')
   * ```
   */
  within<Value>(
    tx: Tx,
    intent: Intent,
    work: (attempt: TransactionAttempt<Tx>) => Value | Promise<Value>,
  ): Promise<Answer<Value>>
  /**
   * Listens to an event; the returned function stops it. Listeners are called in the middle of an attempt, one after the other: do little
   * there. What they throw is dropped.
   *
   * @throws `OPTION_INVALID` for a name that does not exist
   *
   * @example
   * ```ts
   * const stop = safe.on('leaseLost', ({ record, attempt }) => console.error(`${record} was lost by attempt ${attempt}`))
   * ```
   */
  on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void
  /** Starts the sweeper in the background; it does not keep the process alive. Any number of processes may run one. */
  start(): void
  /** Stops timers and closes what the instance opened by itself. Work under way goes on; its claims are not released. Idempotent. */
  close(): Promise<void>
}

/**
 * Makes an instance. Everything wrong with its options is refused here, as `OPTION_INVALID`.
 *
 * @example
 * ```ts
 * const safe = retrysafe({ store: postgres(new pg.Pool()), mode: 'transaction', scope: (req) => req.user.id })
 * ```
 */
export function retrysafe<Tx extends object>(options: RetrysafeOptions<Tx>): Retrysafe<Tx> {
  checkInstance(options)
  const { store } = options
  const clock = options.clock ?? systemClock
  const random = options.random ?? systemRandom
  const events = createEvents()
  const sharing = createSharing(clock)
  const keeper = createKeeper(store, clock, events)
  const habit = createHabit()
  const cache = options.cacheBytes ? createCache(clock, options.cacheBytes) : undefined
  const engine: Engine<Tx> = { store, clock, random, events, sharing, keeper, habit, cache }
  const { transactions } = store
  const runWithin = transactions && createWithin(engine, transactions)
  const sweeper = createSweeper(engine, options.sweepEveryMs ?? 60_000)
  const defaults = pickOptions(options)
  const ways = new Map<Mode, { readonly policy: Policy; readonly format: Format<never> }>()
  // Resolved here too, so that what does not fit together shows now and not at the first request.
  const { retainMs, maxReplyBytes } = resolvePolicy(store, options.mode ?? 'lease', defaults)

  function callOf<Value>(mode: Mode, intent: Intent): Call<Value> {
    let way = ways.get(mode)
    if (way === undefined) {
      const policy = resolvePolicy(store, mode, defaults)
      way = { policy, format: valueFormat<never>(policy) }
      ways.set(mode, way)
    }
    return resolveIntent(intent, way.policy, way.format as Format<Value>)
  }

  async function execute<Value>(call: Call<Value>, work: AnyWork<Tx, Value>): Promise<Answer<Value>> {
    if (call.policy.mode === 'lease') return runLease(engine, call, work as LeaseWork<Tx, Value>)
    if (transactions === undefined) throw withoutTransactions(store)
    return runTransaction(engine, transactions, call, work as TransactionWork<Tx, Value>)
  }

  function on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void {
    if (eventNames.includes(name)) return events.on(name, listener)
    throw fail('OPTION_INVALID', { detail: `there is no event ${JSON.stringify(name)}` })
  }

  const instance: Retrysafe<Tx> = {
    transaction: async (intent, work) => execute(callOf('transaction', intent), work as AnyWork<Tx, never>),
    run: async (intent, work) => execute(callOf('lease', intent), work as AnyWork<Tx, never>),
    within: async (tx, intent, work) => {
      if (runWithin === undefined) throw withoutTransactions(store)
      return runWithin(tx, callOf('transaction', intent), work)
    },
    on,
    ...createOperator(engine, { retainMs, maxReplyBytes }),
    start: sweeper.start,
    close: async () => {
      sweeper.stop()
      keeper.close()
      await store.close?.()
    },
  }
  const resolve: Core<Tx>['resolve'] = (mode, ...layers) => resolvePolicy(store, mode, defaults, ...layers)
  return withCore<Retrysafe<Tx>, Tx>(instance, { clock, events, options, resolve, execute })
}

/** Work for either mode: which of the two attempts it gets is settled by the policy, not by its type. */
type AnyWork<Tx, Value> = (attempt: TransactionAttempt<Tx> & LeaseAttempt<Tx>) => Value | Promise<Value>

const storeFunctions = ['claim', 'takeOver', 'abandon', 'renew', 'complete', 'release', 'find'] as const
const ownOptions = ['store', 'sweepEveryMs', 'cacheBytes', 'clock', 'random', ...surfaceOptions]

function checkInstance<Tx>(options: RetrysafeOptions<Tx>): void {
  checkOptions(options, ownOptions)
  const store: Partial<Store<Tx>> | undefined = options.store
  if (typeof store !== 'object' || storeFunctions.some((name) => typeof store?.[name] !== 'function')) {
    throw fail('OPTION_INVALID', {
      detail: 'store must be a store of this package: postgres(pool), memory(), …',
    })
  }
  const { sweepEveryMs, cacheBytes } = options
  if (cacheBytes !== undefined && !(Number.isSafeInteger(cacheBytes) && cacheBytes >= 0)) {
    throw fail('OPTION_INVALID', { detail: 'cacheBytes must be a whole number of bytes' })
  }
  if (sweepEveryMs !== undefined && !(Number.isSafeInteger(sweepEveryMs) && sweepEveryMs >= 100)) {
    throw fail('OPTION_INVALID', { detail: 'sweepEveryMs must be a whole number of at least 100' })
  }
  checkSurfaceOptions(options)
}

/** The options that runners know, without those of the instance and of its surfaces. */
function pickOptions<Tx>(options: RetrysafeOptions<Tx>): Options {
  return Object.fromEntries(optionNames.map((name) => [name, options[name]]))
}

function withoutTransactions<Tx>(store: Store<Tx>): Error {
  return fail('OPTION_INVALID', { detail: `the ${store.name} store has no transactions: use run` })
}
