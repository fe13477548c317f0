import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Clock, Random } from '../../dist/clock.js'
import { systemClock, systemRandom } from '../../dist/clock.js'
import { checkKey, checkScope, drawKey, keyFromHeader, recordDigest, recordScope } from '../../dist/key.js'

const keyInvalid = expect.objectContaining({ code: 'KEY_INVALID', status: 400 })
const scopeInvalid = expect.objectContaining({ code: 'SCOPE_INVALID' })
const optionInvalid = expect.objectContaining({ code: 'OPTION_INVALID' })

const visibleKey = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((point) => String.fromCharCode(point)),
  minLength: 1,
  maxLength: 255,
})
const quote = (key: string) => `"${key.replace(/["\\]/g, '\\$&')}"`

describe('a key in a header', () => {
  test('no header line is no key', () => {
    expect(keyFromHeader([])).toBeUndefined()
  })

  test('a bare key and the same key in quotes are one key', () => {
    expect(keyFromHeader(['k1'])).toBe('k1')
    expect(keyFromHeader(['"k1"'])).toBe('k1')
    expect(keyFromHeader(['  "k1"\t'])).toBe('k1')
  })

  test('every visible ASCII key comes back from its quoted form', () => {
    fc.assert(
      fc.property(visibleKey, (key) => {
        expect(keyFromHeader([quote(key)])).toBe(key)
      }),
    )
  })

  test('a bare key without comma and quote is taken as it is', () => {
    const bare = visibleKey.filter((key) => !/[",]/.test(key))
    fc.assert(
      fc.property(bare, (key) => {
        expect(keyFromHeader([key])).toBe(key)
      }),
    )
  })

  test.each([
    ['two lines', ['k1', 'k1']],
    ['two lines that Node has joined', ['k1, k1']],
    ['two quoted lines that Node has joined', ['"k1", "k1"']],
    ['two half lines that would join into one quoted key', ['"k1, k2"']],
    ['a bare comma', ['a,b']],
    ['a blank line', ['']],
    ['only white space', [' \t ']],
    ['an empty quoted key', ['""']],
    ['a quote without its end', ['"k1']],
    ['a quote without its start', ['k1"']],
    ['a quote inside a bare key', ['k"1']],
    ['a lone quote', ['"']],
    ['an escape at the end', ['"k1\\"']],
    ['an escape that is none', ['"k\\1"']],
    ['parameters', ['"k1";v=2']],
    ['a space inside', ['k 1']],
    ['a NUL', ['k\u00001']],
    ['a line break', ['k\r\n1']],
    ['a line break in quotes', ['"k\r\n1"']],
    ['DEL', ['k\u007f1']],
    ['white space that HTTP does not have', ['\u00a0k1']],
    ['a line break at the end', ['k1\n']],
    ['a letter beyond ASCII', ['é']],
    ['a letter beyond ASCII in quotes', ['"é"']],
  ])('%s is refused', (_, lines) => {
    expect(() => keyFromHeader(lines)).toThrow(keyInvalid)
  })

  test('a comma inside quotes belongs to the key', () => {
    expect(keyFromHeader(['"a,b"'])).toBe('a,b')
  })

  test('the length counts after unquoting, to 255', () => {
    const longest = '"'.repeat(255)
    expect(keyFromHeader([quote(longest)])).toBe(longest)
    expect(() => keyFromHeader([quote(`${longest}"`)])).toThrow(keyInvalid)
    expect(keyFromHeader(['k'.repeat(255)])).toHaveLength(255)
    for (const length of [256, 1000, 10_000, 100_000]) {
      expect(() => keyFromHeader(['k'.repeat(length)])).toThrow(keyInvalid)
      expect(() => keyFromHeader([`"${'\\'.repeat(length)}`])).toThrow(keyInvalid)
    }
  })

  test('an error never shows the key', () => {
    const message = (lines: string[]) => {
      try {
        keyFromHeader(lines)
      } catch (error) {
        return String(error)
      }
      return 'accepted'
    }
    expect(message(['secret-key, secret-key'])).not.toContain('secret')
    expect(message(['"secret-key'])).not.toContain('secret')
  })
})

describe('a key through the API', () => {
  test.each([
    'Ab',
    'aB',
    'ab ',
    'ab',
    'é',
    'e\u0301',
    'e',
    'order:1:pay',
    '12345',
    '日本',
    '😀'.repeat(255),
    '__proto__',
  ])('%j is taken unchanged', (key) => {
    expect(checkKey(key)).toBe(key)
    expect(checkScope(key)).toBe(key)
  })

  test.each([
    ['undefined', undefined],
    ['a number', 12_345],
    ['an object with a toString', { toString: () => 'k1' }],
    ['an empty text', ''],
    ['256 characters', 'k'.repeat(256)],
    ['256 characters of two code units', '😀'.repeat(256)],
    ['100,000 characters', 'k'.repeat(100_000)],
    ['a NUL', 'a\0b'],
    ['a tab', 'a\tb'],
    ['a line break', 'a\r\nb'],
    ['the separator of operation and scope', 'a\u001fb'],
    ['DEL', 'a\u007f'],
    ['a C1 control character', 'a\u0085'],
    ['a high surrogate alone', 'a\ud83d'],
    ['a low surrogate alone', '\ude00a'],
    ['surrogates in the wrong order', '\ude00\ud83d'],
    ['a zero-width space', 'a\u200b'],
    ['a direction override', 'a\u202eb'],
    ['a word joiner', 'a\u2060'],
    ['a direction isolate', 'a\u2066b'],
    ['a byte order mark', '\ufeffa'],
    ['a line separator', 'a\u2028'],
  ])('%s is refused, as key and as scope', (_, name) => {
    expect(() => checkKey(name)).toThrow(keyInvalid)
    expect(() => checkScope(name)).toThrow(scopeInvalid)
  })

  test('what the check lets through survives UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        try {
          checkKey(text)
        } catch {
          return
        }
        expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text)
        expect([...text].length).toBeLessThanOrEqual(255)
      }),
    )
  })
})

describe('the scope of a record', () => {
  const name = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 64 })

  test('without an operation it is the scope', () => {
    expect(recordScope('tenant', undefined)).toBe('tenant')
  })

  test('two pairs of operation and scope never make one scope', () => {
    const pair = fc.tuple(name, fc.option(name, { nil: undefined }))
    fc.assert(
      fc.property(pair, pair, ([scope, operation], [otherScope, otherOperation]) => {
        const same = scope === otherScope && operation === otherOperation
        expect(recordScope(scope, operation) === recordScope(otherScope, otherOperation)).toBe(same)
      }),
    )
    expect(recordScope('b', 'a')).not.toBe(recordScope('ab', undefined))
    expect(recordScope('c', 'ab')).not.toBe(recordScope('bc', 'a'))
  })

  test('an operation is 1 to 64 characters', () => {
    expect(recordScope('s', 'o'.repeat(64))).toHaveLength(66)
    for (const operation of ['', 'o'.repeat(65), 'a\u001fb', 'a\nb']) {
      expect(() => recordScope('s', operation)).toThrow(optionInvalid)
    }
  })

  test('an absent scope is an error, with an operation too', () => {
    expect(() => recordScope('', 'pay')).toThrow(scopeInvalid)
  })
})

describe('a drawn key', () => {
  const clockAt = (times: number[]): Clock => ({ ...systemClock, now: () => times.shift() ?? 0 })
  const randomOf = (byte: number): Random => ({
    ...systemRandom,
    bytes: (length) => new Uint8Array(length).fill(byte),
  })

  test('it is a UUID of version 7 whose first 48 bits are the time', () => {
    const key = drawKey(clockAt([0x0123456789ab]), systemRandom)
    expect(key).toMatch(/^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(checkKey(key)).toBe(keyFromHeader([key]))
  })

  test('version and variant stand whatever the random bits are', () => {
    expect(drawKey(clockAt([1]), randomOf(0xff))).toBe('00000000-0001-77ff-bfff-ffffffffffff')
    expect(drawKey(clockAt([1]), randomOf(0))).toBe('00000000-0001-7000-8000-000000000000')
  })

  test('keys of one process grow within a millisecond, beyond the counter, and when the clock is set back', () => {
    const times = [...Array<number>(10_000).fill(1_000), 500, 1_000, 1_001, 1_002, 5_000]
    const clock = clockAt([...times])
    const keys = times.map(() => drawKey(clock, systemRandom))
    expect(keys).toEqual([...new Set(keys)].sort())
    expect(keys).toHaveLength(times.length)
  })

  test('the same clock readings and random bytes draw the same keys', () => {
    const draw = () => {
      const clock = clockAt([7, 7, 8])
      return [1, 2, 3].map((byte) => drawKey(clock, randomOf(byte)))
    }
    expect(draw()).toEqual(draw())
  })
})

describe('the digest in events and logs', () => {
  test('it has 16 hexadecimal digits and shows neither key nor scope', () => {
    expect(recordDigest('k1', 'alice')).toMatch(/^[0-9a-f]{16}$/)
  })

  test('a character that moves from the key to the scope changes it', () => {
    expect(recordDigest('ab', 'c')).not.toBe(recordDigest('a', 'bc'))
    expect(recordDigest('a', '1:b')).not.toBe(recordDigest('a1', ':b'))
  })

  test('keys that differ after their 128th character differ', () => {
    const start = 'k'.repeat(128)
    expect(recordDigest(`${start}1`, 's')).not.toBe(recordDigest(`${start}2`, 's'))
  })
})
