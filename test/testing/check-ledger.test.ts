/** The checker finds what is planted (I12): a checker that is never seen to fail has shown nothing. */
import { checkLedger, type LoggedAttempt, type LoggedEffect, type Told } from 'retrysafe/testing'
import { expect, test } from 'vitest'

const ok = (answer: string, replayed = false): Told => ({ kind: 'ok', answer, replayed })
const info: Told = { kind: 'info' }
const fail: Told = { kind: 'fail', code: 'KEY_REUSED' }

function attempt(told: Told, more: Partial<LoggedAttempt> = {}): LoggedAttempt {
  return { key: 'k', payload: 'p', told, ...more }
}

function effect(more: Partial<LoggedEffect> = {}): LoggedEffect {
  return { key: 'k', payload: 'p', generation: 7, ...more }
}

function invariantsOf(check: Parameters<typeof checkLedger>[0]): string[] {
  return checkLedger(check).map(({ invariant }) => invariant)
}

test('a clean log has no findings', () => {
  const attempts = [
    attempt(info),
    attempt(ok('1')),
    attempt(ok('1', true)),
    attempt(fail, { payload: 'other' }),
    attempt(fail, { key: 'refused' }),
    attempt(ok('2'), { scope: 'bob' }),
  ]
  const effects = [effect(), effect({ scope: 'bob' })]
  const records = [{ key: 'k', generation: 7 }]
  expect(checkLedger({ attempts, effects, records, faults: { wanted: 1, fired: 1 } })).toEqual([])
})

test('a planted duplicate is found (I1)', () => {
  expect(invariantsOf({ attempts: [attempt(ok('1'))], effects: [effect(), effect()] })).toEqual(['I1'])
})

test('a planted duplicate behind nothing but lost answers is found (I1)', () => {
  const attempts = [attempt(info), attempt(info), attempt(fail, { payload: 'other' })]
  expect(invariantsOf({ attempts, effects: [effect(), effect()] })).toEqual(['I1'])
})

test('a planted loss is found (I2)', () => {
  expect(invariantsOf({ attempts: [attempt(info), attempt(ok('1'))], effects: [] })).toEqual(['I2'])
})

test('a planted divergence is found (I3)', () => {
  const attempts = [attempt(ok('1')), attempt(ok('2', true))]
  expect(invariantsOf({ attempts, effects: [effect()] })).toEqual(['I3'])
})

test('two first answers are found (I3)', () => {
  expect(invariantsOf({ attempts: [attempt(ok('1')), attempt(ok('1'))], effects: [effect()] })).toEqual([
    'I3',
  ])
})

test('an answer for a payload that did not take effect is found (I4)', () => {
  const attempts = [attempt(ok('1')), attempt(ok('1', true), { payload: 'other' })]
  expect(invariantsOf({ attempts, effects: [effect()] })).toEqual(['I4'])
})

test('an effect of a superseded generation is found (I5)', () => {
  const records = [{ key: 'k', generation: 8 }]
  expect(invariantsOf({ attempts: [attempt(ok('1'))], effects: [effect()], records })).toEqual(['I5'])
})

test('an effect of an attempt that was refused is found (I6)', () => {
  expect(invariantsOf({ attempts: [attempt(fail)], effects: [effect()] })).toEqual(['I6'])
})

test('an effect that nobody asked for is found (I6)', () => {
  expect(invariantsOf({ attempts: [attempt(ok('1'))], effects: [effect(), effect({ key: 'x' })] })).toEqual([
    'I6',
  ])
})

test('a key without a definite answer is found (I7)', () => {
  expect(invariantsOf({ attempts: [attempt(info), attempt(info)], effects: [effect()] })).toEqual(['I7'])
})

test("another scope's answer is found (I9)", () => {
  const attempts = [attempt(ok('1')), attempt(ok('1', true), { scope: 'bob' })]
  expect(invariantsOf({ attempts, effects: [effect(), effect({ scope: 'bob' })] })).toEqual(['I9'])
})

test('a run whose faults did not fire, or in which nothing was asked, is void (I11)', () => {
  const faults = { wanted: 2, fired: 1 }
  expect(invariantsOf({ attempts: [attempt(ok('1'))], effects: [effect()], faults })).toEqual(['I11'])
  expect(invariantsOf({ attempts: [], effects: [] })).toEqual(['I11'])
})
