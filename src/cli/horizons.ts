/** How long callers go on retrying, against how long an outcome is kept: a retry that comes later runs the work again. */
import type { Finding } from '../index.js'
import { durationMs } from './command.js'
import { CliError } from './errors.js'
import { duration } from './format.js'

export interface Horizon {
  readonly name: string
  readonly horizonMs: number
}

const hour = 3_600_000

/** Senders whose schedule is published. */
const known: ReadonlyMap<string, number> = new Map([
  // Live-mode webhooks: "for up to three days" (docs.stripe.com/webhooks).
  ['stripe', 72 * hour],
  // The example schedule of the specification ends about 75 h after the first delivery.
  ['standard-webhooks', 75 * hour],
])

export const horizonUsage = `Known by name: ${[...known]
  .map(([name, ms]) => `${name} (${duration(ms)})`)
  .join(', ')}. Any other: --horizon app=72h`

export function horizonGiven(text: string): Horizon {
  const at = text.indexOf('=')
  const name = at === -1 ? text : text.slice(0, at)
  const horizonMs = at === -1 ? known.get(name) : durationMs(text.slice(at + 1), '--horizon')
  if (name !== '' && horizonMs !== undefined) return { name, horizonMs }
  throw new CliError('USAGE', '--horizon is a known name, or NAME=DURATION such as app=72h', horizonUsage)
}

export function judgeRetention(retainMs: number, horizons: readonly Horizon[]): readonly Finding[] {
  return horizons.map(({ name, horizonMs }) => {
    const id = 'retention'
    const found = `kept for ${duration(retainMs)}, ${name} retries for ${duration(horizonMs)}`
    if (retainMs >= horizonMs) return { id, level: 'ok', found }
    return {
      id,
      level: 'error',
      found,
      means: 'A retry that comes after the retention is taken for a new intent, and its work runs again.',
      advice: `Set retainMs to ${horizonMs} or more, and retryHorizonMs: ${horizonMs}, which refuses less at the start.`,
    }
  })
}
