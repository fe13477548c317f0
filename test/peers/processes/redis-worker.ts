/**
 * A process that works under leases in Redis. Told an {@link Order} it attempts as often as that says, all at once; it reports each key whose work it gets to
 * run, and at the end what the attempts were answered.
 */
import { isRetrysafeError, redis, retrysafe } from '../../processes/own-redis.js'
import { type ClientName, openClient } from './redis-clients.js'

export interface Order {
  readonly client: ClientName
  readonly ports: readonly number[]
  readonly keys: readonly string[]
  /** Attempts for each key. */
  readonly times: number
  readonly leaseMs: number
  /** Whether the work never ends, so that somebody must end the process. */
  readonly stuck: boolean
}

export type Report =
  | { readonly started: string }
  | { readonly ends: readonly { readonly key: string; readonly value?: unknown; readonly code?: string }[] }

function report(what: Report): void {
  process.send?.(what)
}

async function carryOut({ client, ports, keys, times, leaseMs, stuck }: Order): Promise<void> {
  const { handle, end } = await openClient(client, ports)
  const safe = retrysafe({ store: redis(handle), leaseMs, whileRunning: { waitMs: 20_000 } })

  async function attempt(key: string) {
    try {
      const { value } = await safe.run({ scope: 's', key }, async ({ generation }) => {
        report({ started: key })
        if (stuck) await new Promise(() => undefined)
        return generation
      })
      return { key, value }
    } catch (error) {
      return { key, code: isRetrysafeError(error) ? error.code : String(error) }
    }
  }

  const ends = await Promise.all(keys.flatMap((key) => Array.from({ length: times }, () => attempt(key))))
  report({ ends })
  await safe.close()
  await end()
}

process.once('message', (order: Order) => {
  void carryOut(order).finally(() => process.disconnect())
})
