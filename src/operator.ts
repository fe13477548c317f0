/**
 * What an operator does: look at records, decide about those that are stuck, sweep.
 *
 * Every verdict names the generation that was seen (rule 3): when another attempt has moved on meanwhile, nothing is written and the answer is false.
 */
import { type Engine, storedOf, storeFailure } from './engine.js'
import { fail } from './errors.js'
import { splitRecordScope } from './key.js'
import { checkFilter, checkName, checkResolution, checkVerdict } from './operator-input.js'
import { decodeOutcome, encodeOutcome, type Outcome, type StoredReply } from './outcome.js'
import type { Operating, RecordState } from './store.js'
import { sweepAll } from './sweeper.js'

/** Names a record: what the intent had. */
export interface RecordName {
  readonly key: string
  readonly scope: string
  readonly operation?: string | undefined
}

/** A record as an operator sees it. */
export interface RecordView extends RecordName {
  readonly operation: string | undefined
  readonly state: RecordState
  readonly generation: number
  readonly attempts: number
  /** Running: the lease has not run out. Else: retention is not past. */
  readonly live: boolean
  /** What is left until that end, in ms. */
  readonly leftMs: number
}

/** What an operator found out about an unknown record. */
export type Resolution =
  /** It did not take effect: the next attempt runs. */
  | { readonly done: false }
  /**
   * It took effect, and this is its answer: a value for the API, a reply for HTTP. Of a reply `Set-Cookie`, `Date` and what frames the message
   * are left out, as they are of a handler's.
   */
  | { readonly done: true; readonly value?: unknown; readonly reply?: StoredReply }

/**
 * What an operator asks and decides; part of every instance. A verdict names the generation that was seen, and answers false, with nothing written,
 * when another attempt has moved on (rule 3). Every call throws `OPTION_INVALID` for what it is told wrongly, `KEY_INVALID` and `SCOPE_INVALID` for a
 * name that no record has, and `STORE_UNAVAILABLE` when the store cannot be asked.
 */
export interface Operator {
  /**
   * Records by state, in no particular order. Default: every state; `limit` is 1 to 10,000, 100 by default. Costs one statement; on PostgreSQL only
   * `unknown` and `dead` have an index, so for other states a large table is read through.
   *
   * @throws `OPTION_INVALID` for a limit or a state that is none, and on a store that cannot list its records
   *
   * @example
   * ```ts
   * const stuck = await safe.list({ states: ['unknown', 'dead'], limit: 20 })
   * ```
   */
  list(filter?: { states?: readonly RecordState[]; limit?: number }): Promise<readonly RecordView[]>
  /**
   * One record with its outcome, or undefined. Costs a look-up by primary key.
   *
   * @throws `RECORD_CORRUPT` when the outcome cannot be read; `KEY_INVALID`, `SCOPE_INVALID`
   *
   * @example
   * ```ts
   * const record = await safe.show({ scope, key })
   * if (record?.state === 'running') console.log(`held for another ${record.leftMs} ms`)
   * ```
   */
  show(name: RecordName): Promise<(RecordView & { readonly outcome?: Outcome }) | undefined>
  /**
   * Frees a record that is unknown, dead, or running past its lease: the next attempt runs. False: it has moved on, or is none of these.
   *
   * @throws `OPTION_INVALID` on a store that cannot, `KEY_INVALID`, `SCOPE_INVALID`
   */
  release(name: RecordName & { readonly generation: number }): Promise<boolean>
  /**
   * Says what became of an unknown record, after somebody has looked: its answer, which every retry then gets, or that it did not take effect,
   * so that the next attempt runs. False: it has moved on.
   *
   * @throws `OPTION_INVALID` on a store that cannot, `KEY_INVALID`, `SCOPE_INVALID`
   *
   * @example
   * ```ts
   * for (const { scope, key, generation } of await safe.list({ states: ['unknown'] })) {
   *   const charge = await provider.find({ reference: `${scope}:${key}` })
   *   const found = charge === undefined ? { done: false as const } : { done: true as const, value: { chargeId: charge.id } }
   *   await safe.resolve({ scope, key, generation }, found)
   * }
   * ```
   */
  resolve(name: RecordName & { readonly generation: number }, resolution: Resolution): Promise<boolean>
  /**
   * Removes what is past retention, in batches of 1,000; answers how many records went.
   *
   * @throws `OPTION_INVALID` on a store that expires its records by itself
   */
  sweep(): Promise<number>
}

export function createOperator<Tx>(
  engine: Engine<Tx>,
  limits: { readonly retainMs: number; readonly maxReplyBytes: number },
): Operator {
  const { store } = engine
  const { retainMs, maxReplyBytes } = limits

  function operating(): Operating {
    if (store.operating !== undefined) return store.operating
    throw fail('OPTION_INVALID', { detail: `the ${store.name} store cannot list its records` })
  }

  async function asked<Result>(during: string, ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask()
    } catch (error) {
      throw storeFailure(engine, during, error)
    }
  }

  const list: Operator['list'] = (filter) =>
    asked('list', async () => {
      const rows = await operating().list(checkFilter(filter))
      return rows.map(({ identity, ...rest }) => ({
        key: identity.key,
        ...splitRecordScope(identity.scope),
        ...rest,
      }))
    })

  const show: Operator['show'] = (name) =>
    asked('show', async () => {
      const identity = checkName(name)
      const seen = await store.find(identity, engine.clock.now())
      if (seen === undefined) return undefined
      const { state, generation, attempts, live, leftMs } = seen
      const view = {
        key: identity.key,
        ...splitRecordScope(identity.scope),
        state,
        generation,
        attempts,
        live,
        leftMs,
      }
      return state === 'done' ? { ...view, outcome: decodeOutcome(storedOf(seen).outcome) } : view
    })

  const release: Operator['release'] = (name) =>
    asked('release', () => operating().resolveReleased({ ...checkVerdict(name), retainMs }))

  const resolve: Operator['resolve'] = (name, resolution) =>
    asked('resolve', async () => {
      const outcome = checkResolution(resolution)
      if (outcome === undefined) return release(name)
      const bytes = encodeOutcome(outcome, maxReplyBytes)
      return operating().resolveDone({ ...checkVerdict(name), outcome: bytes, retainMs })
    })

  return { list, show, release, resolve, sweep: () => asked('sweep', () => sweepAll(engine)) }
}
