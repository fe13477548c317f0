/**
 * The door between an instance and the surfaces built on it (HTTP now): a symbol that every copy of the package in a process shares,
 * so an adapter loaded from another copy still finds the instance.
 */
import type { Answer, Call, LeaseAttempt, TransactionAttempt } from './attempt.js'
import type { Clock } from './clock.js'
import { fail } from './errors.js'
import type { Events } from './events.js'
import { checkScope } from './key.js'
import type { Mode, Options, Policy } from './options.js'

const door = Symbol.for('retrysafe.core.1')

/** What a surface hands to `scope`: its own request, whose type an instance cannot know. A function may name the type it expects. */
type Request = ReturnType<typeof JSON.parse>

/** Options that only make sense per instance or where requests come in. */
export interface SurfaceOptions {
  /** Who a key belongs to: a text, or a function of the request (or whatever the surface hands in). No default. */
  readonly scope?: string | ((request: Request) => string | Promise<string>)
  /** The largest request body that is read, in bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Where the pages about problems are served; prefix of `type` and `Link`. Default `/.well-known/retrysafe`. */
  readonly problemBase?: string
}

/** Names of {@link SurfaceOptions}. */
export const surfaceOptions: readonly string[] = ['scope', 'maxBodyBytes', 'problemBase']

/** Refuses surface options of the wrong kind: `OPTION_INVALID`. */
export function checkSurfaceOptions({
  scope,
  maxBodyBytes,
  problemBase,
}: { readonly [Name in keyof SurfaceOptions]?: unknown }): void {
  if (typeof scope === 'string') checkScope(scope)
  else if (scope !== undefined && typeof scope !== 'function') {
    throw fail('OPTION_INVALID', { detail: 'scope must be a text or a function of the request' })
  }
  if (maxBodyBytes !== undefined && !(Number.isSafeInteger(maxBodyBytes) && Number(maxBodyBytes) >= 0)) {
    throw fail('OPTION_INVALID', { detail: 'maxBodyBytes must be a whole number of bytes' })
  }
  if (
    problemBase !== undefined &&
    (typeof problemBase !== 'string' || !/^(\/|https?:\/\/)[\x21-\x7e]*$/.test(problemBase))
  ) {
    throw fail('OPTION_INVALID', { detail: 'problemBase must be a path or a URL' })
  }
}

/** What a surface may do with an instance. */
export interface Core<Tx = unknown> {
  readonly clock: Clock
  readonly events: Events
  /** The instance's own options, to be overridden per use. */
  readonly options: Options & SurfaceOptions
  /** Merges options over the instance's, checks them and fills in defaults; throws `OPTION_INVALID`. */
  resolve(mode: Mode | undefined, ...layers: readonly Options[]): Policy
  /** Runs a call in the mode its policy names. */
  execute<Value>(
    call: Call<Value>,
    work: (attempt: TransactionAttempt<Tx> & LeaseAttempt<Tx>) => Value | Promise<Value>,
  ): Promise<Answer<Value>>
}

/** Puts the core behind the door of an instance. */
export function withCore<Instance extends object, Tx>(instance: Instance, core: Core<Tx>): Instance {
  Object.defineProperty(instance, door, { value: core })
  return instance
}

/** The core of an instance made by `retrysafe()`, by whichever copy of the package. */
export function coreOf<Tx>(instance: object): Core<Tx> {
  const core = (instance as { [door]?: Core<Tx> } | null | undefined)?.[door]
  if (core === undefined) {
    throw fail('OPTION_INVALID', { detail: 'the first argument must be what retrysafe({ … }) returned' })
  }
  return core
}
