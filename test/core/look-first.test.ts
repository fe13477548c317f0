/** A look goes before the claim where a retry is likely: because the caller says so, or because most calls of late were retries. */
import { drawKey, retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { expect, test } from 'vitest'

function setUp() {
  const real = memory()
  const calls: string[] = []
  const store = {
    ...real,
    claim: (request: Parameters<typeof real.claim>[0]) => {
      calls.push('claim')
      return real.claim(request)
    },
    find: (...asked: Parameters<typeof real.find>) => {
      calls.push('find')
      return real.find(...asked)
    },
    transactions: {
      ...real.transactions,
      begin: (request: Parameters<typeof real.transactions.begin>[0]) => {
        calls.push('claim')
        return real.transactions.begin(request)
      },
    },
  }
  const safe = retrysafe({ store })
  return { safe, taken: () => calls.splice(0) }
}

test.each(['transaction', 'run'] as const)(
  'a first try claims, a declared retry looks, and a retry of nothing runs (%s)',
  async (mode) => {
    const { safe, taken } = setUp()
    const intent = { scope: 's', key: 'k' }
    await safe[mode](intent, () => 1)
    expect(taken()).toEqual(['claim'])
    expect(await safe[mode]({ ...intent, retry: true }, () => 2)).toEqual({ value: 1, replayed: true })
    expect(taken()).toEqual(['find'])
    expect(await safe[mode]({ ...intent, key: 'other', retry: true }, () => 3)).toEqual({
      value: 3,
      replayed: false,
    })
    expect(taken()).toEqual(['find', 'claim'])
  },
)

test.each(['transaction', 'run'] as const)(
  'a run of retries is looked up, and a run of new intents claimed again (%s)',
  async (mode) => {
    const { safe, taken } = setUp()
    await safe[mode]({ scope: 's', key: 'k' }, () => 1)
    for (let replays = 0; replays < 20; replays += 1) await safe[mode]({ scope: 's', key: 'k' }, () => 2)
    expect(taken().at(-1)).toBe('find')
    for (let fresh = 0; fresh < 20; fresh += 1) await safe[mode]({ scope: 's', key: drawKey() }, () => 3)
    taken()
    await safe[mode]({ scope: 's', key: drawKey() }, () => 3)
    expect(taken()).toEqual(['claim'])
  },
)
