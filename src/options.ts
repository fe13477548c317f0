/**
 * Options: their defaults, and the check that refuses a wrong configuration where it is written down instead of at the first request.
 */
import { longestTimerMs } from './clock.js'
import { fail } from './errors.js'
import { canTransact, type Store } from './store.js'

/** How claim, work and outcome hang together; named by the user, never guessed. */
export type Mode = 'transaction' | 'lease'

/** What `keep` is told about the end of the work. */
export interface KeepContext {
  /** HTTP status of the reply; undefined outside HTTP. */
  readonly status: number | undefined
  /** What the work returned: the reply, or the value. */
  readonly value: unknown
}

/** What `mayReplay` is told about the stored outcome. */
export interface ReplayContext {
  readonly key: string
  readonly scope: string
  readonly operation: string | undefined
  readonly generation: number
  /** Status of the stored reply; undefined outside HTTP. */
  readonly status: number | undefined
}

/** Options of an instance, each of which a single use may override. */
export interface Options {
  /**
   * `transaction`: claim, the work's writes and the outcome commit in one database transaction. For work that only touches this database.
   * `lease`: the claim is committed first and the work runs outside any transaction. For work that calls other systems.
   *
   * The promise, effects commit exactly once and attempts are at least once, covers what is written through `tx` and `commit`. Anything else that a
   * lease-mode handler does is at least once: after a crash, a lost lease or a 5xx it runs again, unless the route
   * says `onOwnerLost: 'unknown'` or `keep: 'all'`. No default: name it here or per use.
   */
  readonly mode?: Mode
  /** How long an outcome is kept, in ms. Default 24 h (rule 19). */
  readonly retainMs?: number
  /** How long a claim lasts unrenewed, in ms; renewed every third. Default 30 s. */
  readonly leaseMs?: number
  /** What a duplicate of running work gets: 409 at once, or the outcome if it comes within `waitMs`. Default `'refuse'`. */
  readonly whileRunning?: 'refuse' | { readonly waitMs: number }
  /**
   * Which endings are kept and replayed. Default: replies below 500 other than 401, 403, 407, 408, 409, 425, 429; `'all'` as Stripe v1 does,
   * `'success'` below 400 only, or a predicate (rule 11). In transaction mode a throw is never kept.
   */
  readonly keep?: 'default' | 'all' | 'success' | ((end: KeepContext) => boolean)
  /** Lease mode, owner gone without a word: run again, or refuse as unknown until somebody looks. Default `'rerun'`. */
  readonly onOwnerLost?: 'rerun' | 'unknown'
  /** Store not reachable at the claim: refuse with 503, or (lease mode only) run the work unprotected. Default `'refuse'` (rule 17). */
  readonly onStoreDown?: 'refuse' | 'run'
  /** Asked before a stored outcome is given again, with the request or intent at hand; false refuses with 403. Default: yes. */
  readonly mayReplay?: (record: ReplayContext, context: unknown) => boolean | Promise<boolean>
  /** The longest time after which a caller may still retry, in ms; a shorter retention is refused (rule 19). */
  readonly retryHorizonMs?: number
  /** How long the work may take, in ms. Default 30 s in transaction mode, 15 min in lease mode. */
  readonly workTimeoutMs?: number
  /** The largest reply that is stored, in bytes; a larger one reaches its first caller and is not replayable (rule 12). Default 1 MiB. */
  readonly maxReplyBytes?: number
}

/** Options with every default filled in. */
export interface Policy {
  readonly mode: Mode
  readonly retainMs: number
  readonly leaseMs: number
  readonly waitMs: number
  readonly keep: NonNullable<Options['keep']>
  readonly onOwnerLost: 'rerun' | 'unknown'
  readonly onStoreDown: 'refuse' | 'run'
  readonly mayReplay: Options['mayReplay']
  readonly retryHorizonMs: number
  readonly workTimeoutMs: number
  readonly maxReplyBytes: number
}

const day = 24 * 60 * 60_000
/** Ten years: longer is a mistake of units, and some stores' clocks end there. */
const longestMs = 3650 * day
const oneMiB = 1024 * 1024

/** The statuses below 500 that say nothing about the intent itself, only about this moment or this caller (rule 11). */
export const statusesNotKept: ReadonlySet<number> = new Set([401, 403, 407, 408, 409, 425, 429])

const checks: {
  readonly [Name in keyof Options]-?: (value: NonNullable<Options[Name]>) => string | undefined
} = {
  mode: (value) => oneOf(value, ['transaction', 'lease']),
  retainMs: (value) => duration(value, 1, longestMs),
  leaseMs: (value) => duration(value, 10, day),
  whileRunning: (value) =>
    value === 'refuse' || duration((value as { waitMs?: unknown } | null)?.waitMs, 0, day) === undefined
      ? undefined
      : "must be 'refuse' or { waitMs } from 0 to 24 h",
  keep: (value) => (typeof value === 'function' ? undefined : oneOf(value, ['default', 'all', 'success'])),
  onOwnerLost: (value) => oneOf(value, ['rerun', 'unknown']),
  onStoreDown: (value) => oneOf(value, ['refuse', 'run']),
  mayReplay: (value) => (typeof value === 'function' ? undefined : 'must be a function'),
  retryHorizonMs: (value) => duration(value, 0, longestMs),
  workTimeoutMs: (value) => duration(value, 1, longestTimerMs),
  maxReplyBytes: (value) => duration(value, 0, 1024 * oneMiB),
}

/** Names of {@link Options}, for surfaces that add their own and want to tell a typo from an option. */
export const optionNames = Object.keys(checks) as readonly (keyof Options)[]

/** Refuses options that are unknown or out of range: `OPTION_INVALID`, with the name and what it must be. */
export function checkOptions(options: unknown, alsoAllowed: readonly string[] = []): void {
  if (typeof options !== 'object' || options === null)
    throw fail('OPTION_INVALID', { detail: 'options must be an object' })
  for (const [name, value] of Object.entries(options)) {
    if (alsoAllowed.includes(name) || value === undefined) continue
    if (!Object.hasOwn(checks, name)) {
      throw fail('OPTION_INVALID', { detail: `there is no option ${JSON.stringify(name)} here` })
    }
    const complaint = checks[name as keyof Options](value as never)
    if (complaint !== undefined) throw fail('OPTION_INVALID', { detail: `${name} ${complaint}` })
  }
}

/** Merges options (later ones win), fills in the defaults and checks what only shows in combination. */
export function resolvePolicy<Tx>(
  store: Store<Tx>,
  mode: Mode | undefined,
  ...layers: readonly Options[]
): Policy {
  const merged: Options = Object.assign({}, ...layers.map(withoutUndefined))
  const chosen = mode ?? merged.mode
  if (chosen === undefined) {
    throw fail('OPTION_INVALID', {
      detail: "mode is not named: say 'transaction' or 'lease', per instance or per use",
    })
  }
  if (chosen === 'transaction' && !canTransact(store)) {
    throw fail('OPTION_INVALID', { detail: `the ${store.name} store has no transactions: use mode 'lease'` })
  }
  const policy: Policy = {
    mode: chosen,
    retainMs: merged.retainMs ?? day,
    leaseMs: merged.leaseMs ?? 30_000,
    waitMs: typeof merged.whileRunning === 'object' ? merged.whileRunning.waitMs : 0,
    keep: merged.keep ?? 'default',
    onOwnerLost: merged.onOwnerLost ?? 'rerun',
    onStoreDown: merged.onStoreDown ?? 'refuse',
    mayReplay: merged.mayReplay,
    retryHorizonMs: merged.retryHorizonMs ?? 0,
    workTimeoutMs: merged.workTimeoutMs ?? (chosen === 'transaction' ? 30_000 : 15 * 60_000),
    maxReplyBytes: merged.maxReplyBytes ?? oneMiB,
  }
  checkTogether(policy)
  return policy
}

function checkTogether(policy: Policy): void {
  if (policy.retainMs < policy.retryHorizonMs) {
    throw fail('OPTION_INVALID', {
      detail: 'retainMs is shorter than retryHorizonMs: a late retry would run again',
    })
  }
  if (policy.mode === 'lease' && policy.retainMs < policy.leaseMs) {
    throw fail('OPTION_INVALID', { detail: 'retainMs is shorter than leaseMs' })
  }
  if (policy.mode === 'transaction' && policy.onStoreDown === 'run') {
    throw fail('OPTION_INVALID', {
      detail: "onStoreDown: 'run' needs mode 'lease': without the store there is no transaction",
    })
  }
}

/** Whether a failure may be kept without the work having said so: by `'all'`, or by a predicate, of which nothing is known. */
export function keepsFailures({ keep }: Policy): boolean {
  return keep === 'all' || typeof keep === 'function'
}

/** Drops members that are undefined, so that a layer cannot erase the one below by naming an option without a value. */
function withoutUndefined(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

function oneOf(value: unknown, allowed: readonly string[]): string | undefined {
  return allowed.includes(value as string)
    ? undefined
    : `must be one of ${allowed.map((word) => `'${word}'`).join(', ')}`
}

function duration(value: unknown, least: number, most: number): string | undefined {
  const good = typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  return good ? undefined : `must be a whole number from ${least} to ${most}`
}
