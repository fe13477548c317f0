/** What a store holds may be anything: a terminal shows it, and obeys none of it. */
import { expect, test } from 'vitest'
import { jsonText, shown } from '../../dist/cli/format.js'

test('a key with a control character is shown in quotes, escaped beyond ASCII too', () => {
  expect(shown('pay-43')).toBe('pay-43')
  expect(shown('\u001b[31m')).toBe('"\\u001b[31m"')
  expect(shown('\u009b31m')).toBe('"\\u009b31m"')
})

test('JSON holds no control character and says the same', () => {
  const value = { text: '\u0000\u007f\u0085\u009b31m é' }
  expect(jsonText(value)).not.toMatch(/\p{Cc}/u)
  expect(JSON.parse(jsonText(value))).toEqual(value)
})
