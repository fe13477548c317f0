import { randomUUID } from 'node:crypto'
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { planFaults, withFaults } from 'retrysafe/testing'
import { describe, expect, test } from 'vitest'

function room() {
  const faults = planFaults()
  const inner = memory()
  const store = withFaults(inner, faults)
  const safe = retrysafe({ store, leaseMs: 2000 })
  const identity = { key: randomUUID(), scope: 's' }
  const now = Date.now()
  const request = {
    identity,
    owner: randomUUID(),
    fingerprint: Uint8Array.of(1),
    leaseMs: 60_000,
    callerNowMs: now,
  }
  return { faults, inner, store, safe, identity, request, now }
}

describe('a fault around a store', () => {
  test('an answer is lost after the call was applied', async () => {
    const { faults, inner, store, request, identity, now } = room()
    faults.next('claim', 'loseAnswer')
    await expect(store.claim(request)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await inner.find(identity, now)).toMatchObject({ state: 'running', owner: request.owner })
    expect(faults.fired()).toBe(1)
  })

  test('a call fails before it is applied, with the same error', async () => {
    const { faults, inner, store, request, identity, now } = room()
    faults.next('claim', 'failBefore')
    await expect(store.claim(request)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await inner.find(identity, now)).toBeUndefined()
  })

  test('the call after it passes, and faults of one point queue up', async () => {
    const { faults, store, request } = room()
    faults.next('claim', 'failBefore')
    faults.next('claim', 'failBefore')
    await expect(store.claim(request)).rejects.toThrow()
    await expect(store.claim(request)).rejects.toThrow()
    expect(await store.claim(request)).toMatchObject({ claimed: true })
    expect(faults.calls('claim')).toBe(3)
  })

  test('the nth call fails and no other', async () => {
    const { faults, store, identity, now } = room()
    await store.find(identity, now)
    faults.nth('find', 2, 'failBefore')
    await store.find(identity, now)
    await expect(store.find(identity, now)).rejects.toThrow()
    await store.find(identity, now)
  })

  test('every call fails until it heals', async () => {
    const { faults, store, identity, now } = room()
    faults.always('find', 'failBefore')
    for (let call = 0; call < 3; call += 1) await expect(store.find(identity, now)).rejects.toThrow()
    faults.heal()
    expect(await store.find(identity, now)).toBeUndefined()
  })

  test('a call waits where it is stopped, nothing of it applied, until it is released', async () => {
    const { faults, inner, store, request, identity, now } = room()
    const stopped = faults.stop('claim')
    const claim = store.claim(request)
    await stopped.reached
    expect(await inner.find(identity, now)).toBeUndefined()
    stopped.release()
    expect(await claim).toMatchObject({ claimed: true })
  })

  test('a stopped call may be released into a fault, and healing releases it', async () => {
    const { faults, store, request, identity, now } = room()
    const claim = faults.stop('claim')
    const find = faults.stop('find')
    const claimed = store.claim(request)
    const found = store.find(identity, now)
    await Promise.all([claim.reached, find.reached])
    claim.release('failBefore')
    await expect(claimed).rejects.toThrow()
    faults.heal()
    expect(await found).toBeUndefined()
  })

  test('a save whose answer is lost is ambiguous, landed or not', async () => {
    for (const [fault, state] of [
      ['loseAnswer', 'done'],
      ['failBefore', undefined],
    ] as const) {
      const { faults, inner, store, request, identity, now } = room()
      const fingerprint = Uint8Array.of(1)
      const open = await store.transactions?.begin({
        ...request,
        fingerprint: () => fingerprint,
        timeoutMs: 1000,
      })
      faults.next('save', fault)
      const answer = await open?.save({
        fingerprint,
        outcome: fingerprint,
        retainMs: 60_000,
        undoWork: false,
      })
      expect(answer).toMatchObject({ kind: 'ambiguous' })
      expect((await inner.find(identity, now))?.state).toBe(state)
    }
  })

  test('a transaction whose begin is lost holds nothing', async () => {
    const { faults, store, request } = room()
    const begin = { ...request, fingerprint: () => Uint8Array.of(1), timeoutMs: 1000 }
    faults.next('begin', 'loseAnswer')
    await expect(store.transactions?.begin(begin)).rejects.toThrow()
    expect(await store.transactions?.begin(begin)).toMatchObject({ granted: true })
  })
})

describe('the protocol over a store with faults', () => {
  const intent = () => ({ scope: 's', key: randomUUID() })

  test('a claim whose answer was lost is recognised, and the work runs once', async () => {
    const { faults, safe } = room()
    faults.next('claim', 'loseAnswer')
    let runs = 0
    const answer = await safe.run(intent(), () => {
      runs += 1
      return 'done'
    })
    expect(answer).toEqual({ value: 'done', replayed: false })
    expect([runs, faults.fired()]).toEqual([1, 1])
  })

  test('a completion that keeps failing is tried again inside the lease, and the claim is not released', async () => {
    const { faults, safe } = room()
    for (let call = 0; call < 3; call += 1) faults.next('complete', 'failBefore')
    const key = intent()
    expect(await safe.run(key, () => 'done')).toEqual({ value: 'done', replayed: false })
    expect(faults.calls('complete')).toBe(4)
    expect(faults.calls('release')).toBe(0)
    expect(await safe.run(key, () => 'never')).toEqual({ value: 'done', replayed: true })
  })

  test('a completion whose answer was lost is recognised by its token', async () => {
    const { faults, safe } = room()
    faults.next('complete', 'loseAnswer')
    expect(await safe.run(intent(), () => 'done')).toEqual({ value: 'done', replayed: false })
    expect(faults.calls('complete')).toBe(2)
  })

  test('a commit whose answer was lost is read back: landed it is the answer, else the key is free', async () => {
    const { faults, safe } = room()
    faults.next('save', 'loseAnswer')
    const landed = intent()
    expect(await safe.transaction(landed, () => 'done')).toEqual({ value: 'done', replayed: false })
    expect(await safe.transaction(landed, () => 'never')).toEqual({ value: 'done', replayed: true })
    faults.next('save', 'failBefore')
    const rolledBack = intent()
    const first = safe.transaction(rolledBack, () => 'first')
    await expect(first).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await safe.transaction(rolledBack, () => 'second')).toEqual({ value: 'second', replayed: false })
  })

  test('a store that is down refuses, and the work does not run', async () => {
    const { faults, safe } = room()
    faults.always('claim', 'failBefore')
    faults.always('begin', 'failBefore')
    const never = () => {
      throw new Error('the work ran')
    }
    for (const call of [safe.run(intent(), never), safe.transaction(intent(), never)]) {
      await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryAfterMs: 1000 })
    }
  })
})
