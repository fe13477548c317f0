/** Keys as a client draws them: in time order (rule 32). */
import { randomBytes, randomUUID } from 'node:crypto'
import { type Clock, drawKey, type Random } from 'retrysafe'

const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule: (delayMs, fire) => {
    const timer = setTimeout(fire, delayMs)
    return () => clearTimeout(timer)
  },
}
const random: Random = {
  ownerToken: () => randomUUID(),
  bytes: (length) => randomBytes(length),
  fraction: () => Math.random(),
}

export function uuidKey(): string {
  return drawKey(clock, random)
}

/** As long as a UUID and in time order too, but none: what a store may pack for UUIDs it must not for this. */
export function textKey(): string {
  return `key_${uuidKey().replaceAll('-', '')}`
}

/** Draws so many keys and does the work of each, eight at a time. */
export async function finishedKeys(
  count: number,
  work: (key: string) => Promise<unknown>,
): Promise<string[]> {
  const keys = Array.from({ length: count }, uuidKey)
  const left = keys.values()
  const worker = async () => {
    for (const key of left) await work(key)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  return keys
}
