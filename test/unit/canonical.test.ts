import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fingerprintOfValue } from '../../dist/fingerprint.js'
import { json, parsed, same } from './fingerprints.js'

const bodyInvalid = expect.objectContaining({ code: 'BODY_INVALID', status: 400 })

describe('JSON bytes count by value', () => {
  test.each([
    ['member order', '{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['nested member order', '{"a":{"x":[{"p":1,"q":2}],"y":2}}', '{"a":{"y":2,"x":[{"q":2,"p":1}]}}', true],
    ['white space', '{"a":[1,2]}', ' {\r\n\t"a" : [ 1 , 2 ] } \n', true],
    ['a byte order mark', '{"a":1}', '\ufeff{"a":1}', true],
    ['array order', '[1,2]', '[2,1]', false],
    ['array bounds', '[[1],2]', '[[1,2]]', false],
    ['digits side by side', '[12]', '[1,2]', false],
    ['null and absent', '{"a":null}', '{}', false],
    ['null, false, 0 and empty', 'null', 'false', false],
    ['a number and its text', '1', '"1"', false],
    ['array and object', '[]', '{}', false],
    ['1 and 1.0', '1', '1.0', true],
    ['1 and 1e0', '1', '1e0', true],
    ['1 and 10e-1', '1', '10E-1', true],
    ['100 and 1e2', '100', '1e+02', true],
    ['0.5 and 5e-1', '0.5', '5e-1', true],
    ['0.10 and 0.1', '0.10', '0.1', true],
    ['120 and 12', '120', '12', false],
    ['-0 and 0', '-0', '0', true],
    ['-0.0e5 and 0', '-0.0e5', '0', true],
    ['zero with a huge exponent', '0e999999999999999999999', '0', true],
    ['-1 and 1', '-1', '1', false],
    ['beyond 2^53', '9007199254740993', '9007199254740992', false],
    ['beyond a double', '1e400', '1e401', false],
    ['1e400 and null', '1e400', 'null', false],
    ['more digits than a double has', '0.1', '0.1000000000000000055511151231257827', false],
    ['huge exponents', '1e999999999', '10e999999998', true],
    ['exponents that no integer holds', '1e99999999999999999999', '1e99999999999999999998', false],
    ['their signs', '1e-99999999999999999999', '1e99999999999999999999', false],
    ['their fractions', '1.5e99999999999999999999', '15e99999999999999999999', false],
    ['their zeros', '1.0e+0099999999999999999999', '1e99999999999999999999', true],
    ['escapes', '"a\\u00e9\\n\\/\\"\\\\"', '"a\u00e9\\u000a/\\u0022\\u005C"', true],
    ['an escaped pair', '"\\ud83d\\ude00"', '"😀"', true],
    ['half a pair', '"\\ud83d"', '"\\ud83e"', false],
    ['half a pair and the replacement character', '"\\ud83d"', '"\ufffd"', false],
    ['halves in the wrong order', '"\\ude00\\ud83d"', '"\\ud83d\\ude00"', false],
    ['a half before an escape', '"\\ud83d\\n"', '"\\ud83d\\u000a"', true],
    ['NUL and nothing', '"\\u0000"', '""', false],
    ['NFC and NFD', '"\u00e9"', '"e\u0301"', false],
    ['letter case', '{"a":1}', '{"A":1}', false],
    ['duplicates in other order', '{"a":1,"a":2}', '{"a":2,"a":1}', false],
    ['a duplicate and its last value', '{"a":1,"a":2}', '{"a":2}', false],
    ['duplicates among others', '{"a":1,"b":0,"a":2}', '{"b":0,"a":1,"a":2}', true],
    ['a duplicate in another spelling', '{"a":1,"\\u0061":2}', '{"a":1,"a":2}', true],
    ['__proto__', '{"__proto__":{"a":1}}', '{}', false],
    ['__proto__ in other order', '{"__proto__":1,"constructor":2}', '{"constructor":2,"__proto__":1}', true],
    ['integer-like names', '{"10":1,"9":2,"a":3}', '{"a":3,"9":2,"10":1}', true],
    ['a name that starts another', '{"a":1,"ab":2}', '{"ab":2,"a":1}', true],
    ['text that looks like structure', '["a,b"]', '["a","b"]', false],
    ['a quote that would end a text', '["\\"","x"]', '["\\",\\"x"]', false],
    ['a name and a text', '{"a":"b"}', '["a","b"]', false],
  ])('%s: %s and %s are one intent: %s', (_, one, other, expected) => {
    expect(same(json(one), json(other))).toBe(expected)
  })

  test('any order of members at any depth, any white space and any spelling of texts is the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.infiniteStream(fc.nat(1000)), (value, chance) => {
        const disorder = respelled(value, () => chance.next().value ?? 0)
        expect(same(json(JSON.stringify(value)), json(disorder))).toBe(true)
      }),
    )
  })

  test('two values have one fingerprint only if they are equal', () => {
    const small = fc.jsonValue({ maxDepth: 2, depthSize: 'xsmall' })
    fc.assert(
      fc.property(small, small, (one, other) => {
        expect(same(json(JSON.stringify(one)), json(JSON.stringify(other)))).toBe(
          sortedText(one) === sortedText(other),
        )
      }),
    )
  })

  test('a decimal number is its value, wherever the point and the exponent stand', () => {
    const digits = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).filter((number) => number !== 0n)
    fc.assert(
      fc.property(digits, fc.integer({ min: -40, max: 40 }), fc.nat(20), (number, exponent, zeros) => {
        const one = `${number}e${exponent}`
        const other = `${number}${'0'.repeat(zeros)}.${'0'.repeat(zeros)}0E${exponent - zeros}`
        expect(same(json(one), json(other))).toBe(true)
        expect(same(json(one), json(`${number + 1n}e${exponent}`))).toBe(false)
      }),
    )
  })

  test('a million digits and a long exponent cost no more than their length', () => {
    const digits = '1'.repeat(1_000_000)
    expect(same(json(digits), json(`${digits}.0`))).toBe(true)
    expect(same(json(`1e${digits}`), json(`1e${digits}1`))).toBe(false)
  })

  test('an object of a hundred members is ordered like one of three', () => {
    const members = Array.from({ length: 100 }, (_, index) => `"m${index}":${index}`)
    expect(same(json(`{${members.join()}}`), json(`{${members.toReversed().join()}}`))).toBe(true)
    const doubles = Array.from({ length: 100 }, (_, index) => `"m":${index}`)
    expect(same(json(`{${doubles.join()}}`), json(`{${doubles.toReversed().join()}}`))).toBe(false)
  })

  const malformed = ['{', '}', '[', '[1,]', '[,1]', '{"a"}', '{"a":}', '{"a":1,}', '{,}', '{a:1}', "{'a':1}"]
  const badScalars = [
    '01',
    '1.',
    '.1',
    '-',
    '+1',
    '1e',
    '1e+',
    '0x1',
    'NaN',
    'nul',
    'nullx',
    'True',
    '1 2',
    ' ',
  ]
  const badTexts = ['"', '"\\"', '"\\x"', '"\\u12g4"', '"\\u123', '"\n"', '"\u0000"', '1\u0000', '\u00a01']
  test.each([...malformed, ...badScalars, ...badTexts])('%j is refused as JSON.parse refuses it', (text) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(() => json(text).bytes()).toThrow(bodyInvalid)
  })

  test('of random texts, those are refused that JSON.parse refuses', () => {
    const character = fc.constantFrom(...'{}[]:,"\\u0019eE+-.tfnrals \n')
    fc.assert(
      fc.property(fc.string({ unit: character, minLength: 1, maxLength: 12 }), (text) => {
        expect(accepts(() => json(text).bytes())).toBe(accepts(() => JSON.parse(text)))
      }),
      { numRuns: 3000 },
    )
  })

  test('bytes that are not UTF-8 are refused', () => {
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe9]]) {
      expect(() => json(Uint8Array.of(0x22, ...bytes, 0x22)).bytes()).toThrow(bodyInvalid)
    }
  })

  test('512 levels are read, and one more is refused without an overflow', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(json(nested(512)).bytes()).toHaveLength(33)
    for (const levels of [513, 1_000_000]) expect(() => json(nested(levels)).bytes()).toThrow(bodyInvalid)
    expect(() => json('{"a":'.repeat(513)).bytes()).toThrow(bodyInvalid)
  })

  test('the error never quotes the body', () => {
    expect(() => json('{"card":secret}').bytes()).toThrow(/at byte 8/)
    expect(() => json('{"card":secret}').bytes()).not.toThrow(/secret/)
  })
})

describe('a parsed value and its bytes', () => {
  test('they have one fingerprint where no digit is lost', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = JSON.stringify(value)
        expect(same(json(text), parsed(JSON.parse(text)))).toBe(true)
      }),
    )
  })

  test('every double has one fingerprint as number and as text', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(same(json(String(number)), parsed(number))).toBe(true)
      }),
    )
  })

  test.each([
    ['a bigint', 9_007_199_254_740_993n, '9007199254740993'],
    ['a bigint with zeros', -1000n, '-1e3'],
    ['undefined members', { a: undefined, b: () => 1, c: Symbol('c'), d: 1 }, '{"d":1}'],
    ['undefined elements', [undefined, () => 1, Symbol('s')], '[null,null,null]'],
    ['holes', Array(2), '[null,null]'],
    ['no number', [Number.NaN, Number.POSITIVE_INFINITY, -0], '[null,null,0]'],
    ['a date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['a toJSON of its own', { toJSON: (name: string) => [name] }, '[""]'],
    ['a toJSON inside', { a: [{ toJSON: (name: string) => name }] }, '{"a":["0"]}'],
    ['wrapped values', [Object(1), Object('a'), Object(false), Object(2n)], '[1,"a",false,2]'],
    ['no prototype', Object.assign(Object.create(null), { b: 1, a: 2 }), '{"a":2,"b":1}'],
    ['inherited members', Object.assign(Object.create({ inherited: 1 }), { own: 1 }), '{"own":1}'],
    ['only inherited members', Object.create({ inherited: 1 }), '{}'],
    ['symbol members', { [Symbol('s')]: 1 }, '{}'],
    ['a lone surrogate', 'a\ud83d', '"a\\ud83d"'],
    ['a lone surrogate in a name', { '\ude00': 1 }, '{"\\ude00":1}'],
    ['an own __proto__', JSON.parse('{"__proto__":1,"a":2}'), '{"a":2,"__proto__":1}'],
    ['a long text', 'é"\\'.repeat(10_000), JSON.stringify('é"\\'.repeat(10_000))],
  ])('%s counts as its JSON', (_, value, text) => {
    expect(same(parsed(value), json(text))).toBe(true)
  })

  test('bytes inside a value count by their content, under a tag of their own', () => {
    const bytes = Uint8Array.of(1, 2)
    expect(same(parsed({ file: bytes }), parsed({ file: Buffer.from(bytes) }))).toBe(true)
    expect(same(parsed({ file: bytes }), parsed({ file: Uint8Array.of(1, 3) }))).toBe(false)
    expect(same(parsed({ file: bytes }), parsed({ file: [1, 2] }))).toBe(false)
    expect(same(parsed({ file: bytes }), parsed({ file: { type: 'Buffer', data: [1, 2] } }))).toBe(false)
    expect(same(parsed([bytes, Uint8Array.of(3)]), parsed([Uint8Array.of(1), Uint8Array.of(2, 3)]))).toBe(
      false,
    )
  })

  test('a body that a raw parser left as bytes is read like bytes', () => {
    expect(same(parsed(Buffer.from('{"a":1.0}')), json('{"a":1}'))).toBe(true)
    expect(same(parsed(Buffer.alloc(0)), parsed(undefined))).toBe(true)
  })

  const cycle: unknown[] = []
  cycle.push(cycle)
  let tooDeep: unknown = []
  for (let level = 1; level < 513; level += 1) tooDeep = [tooDeep]

  test.each([
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a cycle', cycle],
    ['513 levels', tooDeep],
    ['a Map', new Map([[1, 2]])],
    ['a Set inside', { ids: new Set([1]) }],
    ['a RegExp', /a/],
    ['an Error', new Error('e')],
    ['an ArrayBuffer', new ArrayBuffer(2)],
  ])('%s is refused, for JSON would not tell two of them apart', (_, value) => {
    expect(() => parsed(value)).toThrow(bodyInvalid)
    expect(() => fingerprintOfValue(value)).toThrow(bodyInvalid)
  })

  test('a value that is read while another one is being read disturbs neither', () => {
    const inner = { toJSON: () => fingerprintOfValue({ z: 1, a: [2] }).bytes().length }
    expect(same(parsed({ z: 1, inner, a: 'x' }), json('{"a":"x","inner":17,"z":1}'))).toBe(true)
  })
})

function accepts(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

/** JSON of a value with its members sorted, by code units. */
function sortedText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(sortedText).join()}]`
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${sortedText(member)}`,
  )
  return `{${members.sort().join()}}`
}

/** JSON of a value with members, white space and the spelling of texts left to chance. */
function respelled(value: unknown, chance: () => number): string {
  const space = () => ['', ' ', '\n', '\t\r'][chance() % 4] ?? ''
  const text = (plain: string) =>
    `"${[...plain].map((character) => (chance() % 2 === 0 ? escaped(character) : JSON.stringify(character).slice(1, -1))).join('')}"`
  const write = (inner: unknown): string => {
    if (typeof inner === 'string') return text(inner)
    if (typeof inner !== 'object' || inner === null) return JSON.stringify(inner)
    if (Array.isArray(inner))
      return `[${inner.map((element) => space() + write(element)).join(`${space()},`)}]`
    const members = Object.entries(inner).map(([name, member]) => ({ name, member, place: chance() }))
    members.sort((one, other) => one.place - other.place)
    return `{${members.map(({ name, member }) => `${space()}${text(name)}${space()}:${write(member)}`).join()}}`
  }
  return space() + write(value) + space()
}

function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
