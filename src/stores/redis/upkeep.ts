/** What an operator sees and decides. A list and a count read every record: there is no index beside the records, which would be a second write. */
import { fail } from '../../errors.js'
import type { Operating, RecordState, RecordSummary } from '../../store.js'
import type { Redis } from './driver.js'
import { expiries, type Ledger, mark, wrote } from './lease-mode.js'
import { base64, identityOf, nameOf, wholeMs, wordsOf } from './record.js'
import { scripts } from './scripts.js'

const allStates = ['running', 'released', 'done', 'unknown', 'dead'] as const satisfies readonly RecordState[]

export function operating(ledger: Ledger): Operating {
  const { redis, prefix } = ledger
  const { settled, unfinished } = expiries(ledger)
  return {
    list: async ({ states = allStates, limit }) => {
      if (states.some((state) => !allStates.includes(state)))
        throw fail('OPTION_INVALID', { detail: 'there is no such state of a record' })
      const rows: RecordSummary[] = []
      if (states.length === 0) return rows
      for await (const page of pages(redis, prefix)) {
        rows.push(...page.filter(({ state }) => states.includes(state)))
        if (rows.length >= limit) break
      }
      return rows.slice(0, limit)
    },
    count: async () => {
      const counts: Record<RecordState, number> = { running: 0, released: 0, done: 0, unknown: 0, dead: 0 }
      for await (const page of pages(redis, prefix)) for (const { state } of page) counts[state] += 1
      return counts
    },
    resolveDone: async ({ identity, generation, outcome, retainMs }) => {
      const values = [mark(), String(generation), wholeMs(retainMs), settled(retainMs), base64(outcome)]
      return wrote(await redis.run(scripts.resolveDone, nameOf(prefix, identity), ...values))
    },
    resolveReleased: async ({ identity, generation, retainMs }) => {
      const values = [mark(), String(generation), wholeMs(retainMs), settled(retainMs), unfinished(retainMs)]
      return wrote(await redis.run(scripts.resolveReleased, nameOf(prefix, identity), ...values))
    },
  }
}

/** All records, in pages. SCAN may give a name twice while the server's table grows: each is told once. */
async function* pages(redis: Redis, prefix: string): AsyncGenerator<readonly RecordSummary[]> {
  const [spelt = ''] = await redis.run(scripts.spell, prefix)
  const before = spelt.length - prefix.length
  const pattern = `${spelt.replace(/[\\*?[\]]/g, '\\$&')}{*`
  const told = new Set<string>()
  for (const primary of await redis.primaries()) {
    let cursor = '0'
    do {
      const page = await primary.scan(cursor, pattern)
      const names = page.names.map((name) => name.slice(before)).filter((name) => !told.has(name))
      for (const name of names) told.add(name)
      const rows = await Promise.all([...new Set(names)].map((name) => summary(redis, prefix, name)))
      yield rows.filter((row) => row !== undefined)
      cursor = page.cursor
    } while (cursor !== '0')
  }
}

async function summary(redis: Redis, prefix: string, name: string): Promise<RecordSummary | undefined> {
  const [kind, value = '', nowMs] = await redis.run(scripts.head, name)
  // It has ended between the two looks.
  if (kind !== 'seen') return undefined
  const { state, generation, attempts, endsMs } = wordsOf(value)
  const leftMs = endsMs - Number(nowMs)
  return { identity: identityOf(prefix, name), state, generation, attempts, live: leftMs > 0, leftMs }
}
