import { expect, inject, test } from 'vitest'

test('x', () => {
  expect(inject('connectionString')).toMatch(/^postgresql:/)
})
