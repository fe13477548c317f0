/**
 * A view of a tool's transaction object that dies with the attempt (rule 21): with some tools a late statement would run on a connection that
 * serves somebody else by then.
 *
 * Methods run on the object itself, which may keep its state in private fields. What they return (a builder, say) is the tool's own and no longer
 * watched; statements already sent stand in the connection's queue before its end.
 */
import { fail } from '../../errors.js'
import type { Guarded } from './driver.js'

type Target = object & Partial<Record<PropertyKey, unknown>>

export function viewOf<Tx>(tx: Tx): Guarded<Tx> {
  let settled = false
  let used = false
  const watched = { tx: watch(tx), used: () => used, settle, between: <T>(run: () => Promise<T>) => run() }
  return watched

  async function settle(): Promise<void> {
    settled = true
  }

  function use(): void {
    if (settled) throw fail('ATTEMPT_SETTLED')
    used = true
  }

  /** Nothing can be watched where a tool finds its transaction by itself and hands over no object. */
  function watch(real: Tx): Tx {
    if ((typeof real !== 'object' || real === null) && typeof real !== 'function') return real
    return viewed(real as Target, use) as Tx
  }
}

/** Stands on an empty object, because a proxy may not show other values than a frozen object it stands on. */
function viewed(real: Target, use: () => void): object {
  const empty: object = typeof real === 'function' ? () => undefined : {}
  const methods = new WeakMap<object, unknown>()
  const view: object = new Proxy(empty, {
    get: (_, name) => {
      // Asked of every object that is returned or printed; it sends nothing.
      if (typeof name !== 'symbol' && name !== 'then' && name !== 'constructor') use()
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

  /** A method called on the view runs on the object, and keeps its own members. */
  function bound(value: unknown): unknown {
    if (typeof value !== 'function') return value
    const known = methods.get(value)
    if (known !== undefined) return known
    const method = new Proxy(value, {
      apply: (called, self, parameters) => Reflect.apply(called, self === view ? real : self, parameters),
    })
    methods.set(value, method)
    return method
  }
}
