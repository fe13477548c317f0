/** `within`: one intent inside the caller's own transaction (rule 7). The same on PostgreSQL: test/postgres/within.test.ts. */
import { type EventName, retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { expect, test } from 'vitest'

function setUp() {
  const store = memory()
  const safe = retrysafe({ store })
  const events: EventName[] = []
  for (const name of ['claimed', 'completed', 'replayed', 'held', 'mismatched', 'released'] as const)
    safe.on(name, () => events.push(name))
  return { store, safe, events, effects: [] as string[] }
}

const intent = { scope: 's', key: 'k', input: 1 }

test('nothing is true before the outer commit, and nothing is emitted at all', async () => {
  const { store, safe, events, effects } = setUp()
  const own = store.transactions.own()
  const answer = await safe.within(own.tx, intent, ({ tx }) => {
    tx.defer(() => effects.push('order'))
    return 'placed'
  })
  expect(answer).toMatchObject({ value: 'placed', replayed: false })
  expect(await safe.show(intent)).toBeUndefined()
  expect(effects).toEqual([])
  own.commit()
  expect(await safe.show(intent)).toMatchObject({ state: 'done' })
  expect({ effects, events }).toEqual({ effects: ['order'], events: [] })
})

test('an outer rollback leaves nothing, and the key is free', async () => {
  const { store, safe } = setUp()
  const own = store.transactions.own()
  await safe.within(own.tx, intent, () => 'placed')
  own.rollback()
  expect(await safe.show(intent)).toBeUndefined()
  expect(await safe.transaction(intent, () => 'again')).toEqual({ value: 'again', replayed: false })
})

test('a duplicate leaves the caller’s transaction usable', async () => {
  const { store, safe, effects } = setUp()
  await safe.transaction(intent, () => 'first')
  const own = store.transactions.own()
  expect(await safe.within(own.tx, intent, () => 'never')).toEqual({ value: 'first', replayed: true })
  await expect(safe.within(own.tx, { ...intent, input: 2 }, () => 'never')).rejects.toMatchObject({
    code: 'KEY_REUSED',
  })
  own.tx.defer(() => effects.push('the rest'))
  own.commit()
  expect(effects).toEqual(['the rest'])
})

test('a throw undoes the work of its intent and nothing else', async () => {
  const { store, safe, effects } = setUp()
  const own = store.transactions.own()
  own.tx.defer(() => effects.push('before'))
  const failed = safe.within(own.tx, intent, ({ tx }) => {
    tx.defer(() => effects.push('half'))
    throw new Error('no stock')
  })
  await expect(failed).rejects.toThrow('no stock')
  own.commit()
  expect(effects).toEqual(['before'])
  expect(await safe.show(intent)).toBeUndefined()
})

test('intents in one transaction take turns, and cannot be nested', async () => {
  const { store, safe } = setUp()
  const own = store.transactions.own()
  const order: string[] = []
  const one = (key: string) =>
    safe.within(own.tx, { ...intent, key }, async () => {
      order.push(`${key} in`)
      await new Promise((resume) => setImmediate(resume))
      order.push(`${key} out`)
    })
  await Promise.all([one('a'), one('b')])
  expect(order).toEqual(['a in', 'a out', 'b in', 'b out'])
  const nested = safe.within(own.tx, { ...intent, key: 'c' }, () => one('d'))
  await expect(nested).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})

test('two transactions that claim one key: the second is held at once, never waiting', async () => {
  const { store, safe } = setUp()
  const first = store.transactions.own()
  const second = store.transactions.own()
  await safe.within(first.tx, intent, () => 'placed')
  await expect(safe.within(second.tx, intent, () => 'never')).rejects.toMatchObject({ code: 'IN_PROGRESS' })
  first.commit()
  expect(await safe.within(second.tx, intent, () => 'never')).toEqual({ value: 'placed', replayed: true })
})
