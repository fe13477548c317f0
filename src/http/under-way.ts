/**
 * Which intents a request is under way for: `idempotent()` mounted on the application and again on the route would wait for itself, and
 * tell every client for ever that the first attempt may still be running.
 */
import { fail } from '../errors.js'

interface Intent {
  readonly key: string
  readonly scope: string
  readonly operation: string | undefined
}

const underWay = new WeakMap<object, Set<string>>()
/** Names instances, so that the same key in two of them is two intents. */
const numbers = new WeakMap<object, number>()
let instances = 0

/**
 * Notes that a request enters an intent; what is returned takes the note away.
 *
 * @throws `OPTION_INVALID` where it is in it already
 */
export function enter(request: unknown, core: object, { key, scope, operation }: Intent): () => void {
  if (typeof request !== 'object' || request === null) return () => undefined
  const name = JSON.stringify([numberOf(core), key, scope, operation ?? null])
  const names = underWay.get(request) ?? new Set()
  if (names.has(name)) {
    throw fail('OPTION_INVALID', {
      detail:
        'idempotent() is mounted twice on the way of this request, with one key: mount it once, or name an operation in one of them',
    })
  }
  underWay.set(request, names.add(name))
  return () => names.delete(name)
}

function numberOf(core: object): number {
  const known = numbers.get(core)
  if (known !== undefined) return known
  instances += 1
  numbers.set(core, instances)
  return instances
}
