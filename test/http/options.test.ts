/** A route with wrong options is refused where it is written down, not at its first request. */
import { retrysafe } from 'retrysafe'
import { idempotent } from 'retrysafe/express'
import { memory } from 'retrysafe/memory'
import { expect, test } from 'vitest'

const { transactions: _, ...withoutTransactions } = memory()
const safe = retrysafe({ store: memory(), mode: 'lease', scope: 's' })

function refusal(make: () => unknown): string {
  try {
    make()
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return `${code}: ${message}`
  }
  return 'nothing was refused'
}

test('options that are missing are named', () => {
  const bare = retrysafe({ store: memory() })
  expect(refusal(() => idempotent(bare, { scope: 's' }))).toMatch(/^OPTION_INVALID: .*mode is not named/)
  expect(refusal(() => idempotent(bare, { mode: 'lease' }))).toMatch(/^OPTION_INVALID: .*scope is not named/)
  expect(refusal(() => idempotent(bare, { mode: 'lease', scope: 's' }))).toBe('nothing was refused')
  expect(refusal(() => idempotent({} as never, {}))).toMatch(/^OPTION_INVALID: .*retrysafe\(/)
})

test('a mode that the store cannot carry is refused', () => {
  const leased = retrysafe({ store: withoutTransactions, mode: 'lease', scope: 's' })
  expect(refusal(() => idempotent(leased, { mode: 'transaction' }))).toMatch(
    /OPTION_INVALID: .*no transactions/,
  )
})

test('options that are wrong are named', () => {
  const wrong: [object, string][] = [
    [{ retainSeconds: 1 }, 'retainSeconds'],
    [{ methods: [] }, 'methods'],
    [{ methods: ['GET'] }, 'methods'],
    [{ methods: ['head'] }, 'methods'],
    [{ methods: [''] }, 'methods'],
    [{ methods: 'POST' }, 'methods'],
    [{ header: 'no header' }, 'header'],
    [{ formField: '' }, 'formField'],
    [{ required: 'yes' }, 'required'],
    [{ fingerprint: 'body' }, 'fingerprint'],
    [{ operation: '' }, 'operation'],
    [{ operation: 'o'.repeat(65) }, 'operation'],
    [{ scope: 7 }, 'scope'],
    [{ maxBodyBytes: -1 }, 'maxBodyBytes'],
    [{ maxBodyBytes: '1mb' }, 'maxBodyBytes'],
    [{ problemBase: 'javascript:' }, 'problemBase'],
    [{ replayHeaders: ['set-cookie'] }, 'set-cookie'],
    [{ replayHeaders: 'x-a' }, 'replayHeaders'],
    [{ leaseMs: 0 }, 'leaseMs'],
    [{ keep: 'some' }, 'keep'],
    [{ store: memory() }, 'store'],
    [{ retainMs: 1000, retryHorizonMs: 2000 }, 'retryHorizonMs'],
  ]
  for (const [options, name] of wrong) {
    expect(refusal(() => idempotent(safe, options as never))).toMatch(
      new RegExp(`^OPTION_INVALID: .*${name}`),
    )
  }
  expect(refusal(() => idempotent(safe, { scope: '' }))).toMatch(/^(OPTION|SCOPE)_INVALID/)
})
