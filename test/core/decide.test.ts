/** The state table of docs/rules.md, row by row: what a caller does on what it saw. */
import { expect, test } from 'vitest'
import { type Ask, decide, retryAfterHeldMs, settle } from '../../dist/protocol.js'
import type { RecordState, SeenRecord } from '../../dist/store.js'

const mine = Uint8Array.of(1)
const other = Uint8Array.of(2)
const states: readonly RecordState[] = ['running', 'released', 'done', 'unknown', 'dead']

function seen(state: RecordState, more: Partial<SeenRecord> = {}): SeenRecord {
  return {
    state,
    owner: 'somebody',
    generation: 7,
    attempts: 1,
    fingerprint: mine,
    live: true,
    leftMs: 3000,
    hasSteps: false,
    storeNowMs: 0,
    ...(state === 'done' && { outcome: Uint8Array.of(9) }),
    ...more,
  }
}

function ask(more: Partial<Ask> = {}): Ask {
  return {
    owner: 'me',
    granted: true,
    onOwnerLost: 'rerun',
    matches: (stored) => Buffer.compare(stored, mine) === 0,
    ...more,
  }
}

function verdict(record: SeenRecord | undefined, more: Partial<Ask> = {}): string {
  const decision = decide(record, ask(more))
  return decision.do === 'refuse' ? decision.because : decision.do
}

test('nothing seen: the caller runs if it holds the lock, and is held if it does not', () => {
  expect(verdict(undefined)).toBe('run')
  expect(verdict(undefined, { granted: false })).toBe('held')
})

test('a finished outcome is replayed whatever the lock said (rule 1)', () => {
  expect(verdict(seen('done'))).toBe('replay')
  expect(verdict(seen('done'), { granted: false })).toBe('replay')
})

test('another fingerprint is a mismatch in every live state that holds one, whatever the lock said (rule 16)', () => {
  for (const state of ['running', 'done', 'unknown', 'dead'] as const) {
    for (const granted of [true, false]) {
      expect(verdict(seen(state, { fingerprint: other }), { granted }), state).toBe('mismatched')
    }
  }
  expect(verdict(seen('released', { fingerprint: other, hasSteps: true }))).toBe('mismatched')
})

test('a running lease is held; past its end it is taken over, or given up where the route says so', () => {
  expect(verdict(seen('running'))).toBe('held')
  expect(verdict(seen('running', { live: false }))).toBe('takeOver')
  expect(verdict(seen('running', { live: false }), { granted: false })).toBe('held')
  expect(verdict(seen('running', { live: false }), { onOwnerLost: 'unknown' })).toBe('abandon')
  expect(verdict(seen('running', { live: false, fingerprint: other }))).toBe('mismatched')
})

test('a claim whose answer was lost is recognised by its token, and only while it lives (rule 2)', () => {
  expect(verdict(seen('running', { owner: 'me' }))).toBe('own')
  expect(verdict(seen('running', { owner: 'me', live: false }))).toBe('takeOver')
})

test('a released record runs again, with any fingerprint unless steps are kept', () => {
  expect(verdict(seen('released'))).toBe('takeOver')
  expect(verdict(seen('released', { fingerprint: other }))).toBe('takeOver')
  expect(verdict(seen('released', { live: false }))).toBe('takeOver')
  expect(verdict(seen('released', { hasSteps: true }))).toBe('takeOver')
  expect(verdict(seen('released'), { granted: false })).toBe('held')
})

test('unfinished work with steps is never forgotten by retention: it becomes unknown', () => {
  expect(verdict(seen('released', { hasSteps: true, live: false }))).toBe('abandon')
})

test('past retention a done key is free again, for any fingerprint', () => {
  expect(verdict(seen('done', { live: false }))).toBe('takeOver')
  expect(verdict(seen('done', { live: false, fingerprint: other }))).toBe('takeOver')
  expect(verdict(seen('done', { live: false }), { granted: false })).toBe('held')
})

test('unknown and dead are refused, also past the end that a store keeps for them', () => {
  for (const live of [true, false]) {
    expect(verdict(seen('unknown', { live }))).toBe('unknown')
    expect(verdict(seen('dead', { live }))).toBe('dead')
  }
})

test('without the lock nothing is ever run or taken over', () => {
  for (const record of [undefined, ...states.map((state) => seen(state))]) {
    for (const live of [true, false]) {
      for (const hasSteps of [true, false]) {
        for (const fingerprint of [mine, other]) {
          const word = verdict(record && { ...record, live, hasSteps, fingerprint }, { granted: false })
          expect(['run', 'takeOver']).not.toContain(word)
        }
      }
    }
  }
})

test('what is stored of an ending: success with its writes, failure alone, the rest not at all (rule 11)', () => {
  expect(settle({ threw: false, kept: true, failure: false })).toBe('save')
  expect(settle({ threw: false, kept: true, failure: true })).toBe('saveAlone')
  expect(settle({ threw: true, kept: true, failure: true })).toBe('saveAlone')
  for (const threw of [true, false]) {
    for (const failure of [true, false]) expect(settle({ threw, kept: false, failure })).toBe('forget')
  }
})

test('a held caller is told to come back when the lease ends, in 1 to 5 seconds', () => {
  expect(retryAfterHeldMs(undefined)).toBe(1000)
  expect(retryAfterHeldMs(-5)).toBe(1000)
  expect(retryAfterHeldMs(3000)).toBe(3000)
  expect(retryAfterHeldMs(60_000)).toBe(5000)
})
