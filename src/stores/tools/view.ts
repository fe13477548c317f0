/**
 * A view of a tool's transaction object that dies with the attempt (rule 21): with some tools a late statement would run on a connection that
 * serves somebody else by then.
 *
 * Methods run on the object itself, which may keep its state in private fields. A promise that they return is awaited before the end: behind it
 * may be several statements, and one that failed between our save and COMMIT would turn that COMMIT into a rollback that no tool tells of. What
 * else they return (a builder, say) is the tool's own and no longer watched, unless the tool can be told to ask (`seal`).
 */
import { fail } from '../../errors.js'

type Target = object & Partial<Record<PropertyKey, unknown>>

/** What the work is given, and what is known of its use. */
export interface View<Tx> {
  readonly tx: Tx
  used(): boolean
  /** From now on every use throws; resolves when the promises that the tool gave have settled. */
  settle(): Promise<void>
  /** A tool puts its statements in a row by itself. */
  between<T>(run: () => Promise<T>): Promise<T>
}

interface Watched<Tx> {
  /** Makes a transaction ask before it sends a statement; asking throws once the attempt is over. */
  readonly seal?: ((tx: Tx, ask: () => void) => Tx) | undefined
  /** Why the transaction ended before it was told to: what is sent then is no part of it. */
  readonly lost?: () => unknown
  /** Methods that are refused, because they end the transaction. */
  readonly ends?: readonly string[] | undefined
}

export function viewOf<Tx>(tx: Tx, { seal, lost, ends = [] }: Watched<Tx> = {}): View<Tx> {
  const pending = new Set<Promise<unknown>>()
  let settled = false
  let used = false
  const sealed = seal === undefined ? tx : seal(tx, use)
  return { tx: watch(sealed), used: () => used, settle, between: (run) => run() }

  async function settle(): Promise<void> {
    settled = true
    // Nothing is added any more: one look is enough.
    await Promise.all(pending)
  }

  function use(): void {
    if (settled) throw fail('ATTEMPT_SETTLED')
    const cause = lost?.()
    if (cause !== undefined) throw fail('STORE_UNAVAILABLE', { cause, detail: 'the work was rolled back' })
    used = true
  }

  function track(answer: unknown): void {
    // A promise of the tool's own class may be one that sends when it is awaited.
    if (!(answer instanceof Promise) || answer.constructor !== Promise) return
    const entry: Promise<unknown> = answer.then(
      () => pending.delete(entry),
      () => pending.delete(entry),
    )
    pending.add(entry)
  }

  /** Nothing can be watched where a tool finds its transaction by itself and hands over no object. */
  function watch(real: Tx): Tx {
    if ((typeof real !== 'object' || real === null) && typeof real !== 'function') return real
    return viewed(real as Target, { use, track, ends }) as Tx
  }
}

interface Watch {
  /** Throws once the attempt is over. */
  use(): void
  /** Told of what every method returns. */
  track(answer: unknown): void
  readonly ends: readonly string[]
}

/** Stands on an empty object, because a proxy may not show other values than a frozen object it stands on. */
function viewed(real: Target, { use, track, ends }: Watch): object {
  const empty: object = typeof real === 'function' ? () => undefined : {}
  const methods = new WeakMap<object, unknown>()
  const view: object = new Proxy(empty, {
    get: (_, name) => {
      // Asked of every object that is returned or printed; it sends nothing.
      if (typeof name !== 'symbol' && name !== 'then' && name !== 'constructor') use()
      if (ends.includes(String(name))) return refuse
      return bound(Reflect.get(real, name, real))
    },
    set: (_, name, value) => Reflect.set(real, name, value, real),
    has: (_, name) => Reflect.has(real, name),
    ownKeys: () => Reflect.ownKeys(real),
    getOwnPropertyDescriptor: (_, name) => {
      const found = Reflect.getOwnPropertyDescriptor(real, name)
      return found && { ...found, configurable: true }
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(real),
    apply: (_, self, parameters) => {
      use()
      return Reflect.apply(real as () => unknown, self, parameters)
    },
  })
  return view

  function refuse(): never {
    throw fail('TRANSACTION_ABORTED', {
      detail: 'its end was refused inside the work: the transaction ends with the attempt',
    })
  }

  /** A method called on the view runs on the object, and keeps its own members. */
  function bound(value: unknown): unknown {
    if (typeof value !== 'function') return value
    const known = methods.get(value)
    if (known !== undefined) return known
    const method = new Proxy(value, {
      apply: (called, self, parameters) => {
        const answer: unknown = Reflect.apply(called, self === view ? real : self, parameters)
        track(answer)
        return answer
      },
    })
    methods.set(value, method)
    return method
  }
}
