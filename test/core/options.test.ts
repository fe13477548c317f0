/** A wrong configuration is refused where it is written down, with the option's name in the message. */
import { type ErrorCode, isRetrysafeError, retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { expect, test } from 'vitest'

function refusal(make: () => unknown): { code: ErrorCode; message: string } {
  try {
    make()
  } catch (error) {
    if (isRetrysafeError(error)) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('nothing was refused')
}

const withoutTransactions = () => {
  const { transactions: _, ...rest } = memory()
  return rest
}

test.each([
  ['mode', { mode: 'both' }],
  ['retainMs', { retainMs: 0 }],
  ['retainMs', { retainMs: 1.5 }],
  ['retainMs', { retainMs: '24h' }],
  ['retainMs', { retainMs: Number.NaN }],
  ['leaseMs', { leaseMs: 5 }],
  ['leaseMs', { leaseMs: Number.POSITIVE_INFINITY }],
  ['whileRunning', { whileRunning: 'wait' }],
  ['whileRunning', { whileRunning: { waitMs: -1 } }],
  ['whileRunning', { whileRunning: {} }],
  ['whileRunning', { whileRunning: null }],
  ['keep', { keep: 'everything' }],
  ['onOwnerLost', { onOwnerLost: 'retry' }],
  ['onStoreDown', { onStoreDown: 'open' }],
  ['mayReplay', { mayReplay: true }],
  ['retryHorizonMs', { retryHorizonMs: -1 }],
  ['workTimeoutMs', { workTimeoutMs: 0 }],
  ['workTimeoutMs', { workTimeoutMs: 2 ** 31 }],
  ['maxReplyBytes', { maxReplyBytes: -1 }],
  ['maxBodyBytes', { maxBodyBytes: 1.5 }],
  ['problemBase', { problemBase: 'javascript:alert(1)' }],
  ['scope', { scope: 7 }],
  ['sweepEveryMs', { sweepEveryMs: 1 }],
  ['retainMS', { retainMS: 1000 }],
  ['retryHorizonMs', { retainMs: 1000, retryHorizonMs: 2000 }],
  ['leaseMs', { mode: 'lease', retainMs: 1000, leaseMs: 2000 }],
  ['onStoreDown', { mode: 'transaction', onStoreDown: 'run' }],
  ['store', { store: undefined }],
  ['store', { store: { claim: () => undefined } }],
])('a wrong %s is refused at construction', (name, wrong) => {
  const error = refusal(() => retrysafe({ store: memory(), ...wrong } as never))
  expect(error.code).toBe('OPTION_INVALID')
  expect(error.message).toContain(name)
})

test('transaction mode is refused on a store without transactions', () => {
  expect(refusal(() => retrysafe({ store: withoutTransactions(), mode: 'transaction' })).code).toBe(
    'OPTION_INVALID',
  )
})

test('an option that is named without a value is as if it were absent', () => {
  expect(() => retrysafe({ store: memory(), mode: 'lease', retainMs: undefined } as never)).not.toThrow()
})

test('an event that does not exist cannot be listened to', () => {
  const safe = retrysafe({ store: memory() })
  expect(refusal(() => safe.on('replay' as never, () => undefined)).message).toContain('replay')
})

test.each([
  [{ scope: '', key: 'k' }, 'SCOPE_INVALID'],
  [{ key: 'k' }, 'SCOPE_INVALID'],
  [{ scope: null, key: 'k' }, 'SCOPE_INVALID'],
  [{ scope: 7, key: 'k' }, 'SCOPE_INVALID'],
  [{ scope: 'x'.repeat(256), key: 'k' }, 'SCOPE_INVALID'],
  [{ scope: 's', key: '' }, 'KEY_INVALID'],
  [{ scope: 's' }, 'KEY_INVALID'],
  [{ scope: 's', key: 'x'.repeat(256) }, 'KEY_INVALID'],
  [{ scope: 's', key: 'a\u0000b' }, 'KEY_INVALID'],
  [{ scope: 's', key: '\ud800' }, 'KEY_INVALID'],
  [{ scope: 's', key: 'k', operation: '' }, 'OPTION_INVALID'],
  [{ scope: 's', key: 'k', operation: 'o'.repeat(65) }, 'OPTION_INVALID'],
  [{ scope: 's', key: 'k', inputs: 1 }, 'OPTION_INVALID'],
  [{ scope: 's', key: 'k', input: 1, fingerprint: 'x' }, 'OPTION_INVALID'],
  [{ scope: 's', key: 'k', fingerprint: 7 }, 'OPTION_INVALID'],
  [{ scope: 's', key: 'k', input: () => 1 }, 'BODY_INVALID'],
  [null, 'OPTION_INVALID'],
])('a wrong intent %j is %s, and the work does not run', async (intent, code) => {
  const safe = retrysafe({ store: memory() })
  let ran = false
  const work = () => {
    ran = true
  }
  for (const call of [safe.transaction, safe.run]) {
    await expect(call(intent as never, work)).rejects.toMatchObject({ code })
  }
  expect(ran).toBe(false)
  expect(await safe.list()).toEqual([])
})
