import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Outcome, StoredReply } from '../../dist/outcome.js'
import { decodeOutcome, encodeOutcome } from '../../dist/outcome.js'

const mebibyte = 1_048_576
const corrupt = expect.objectContaining({ code: 'RECORD_CORRUPT', status: 503 })
const again = (outcome: Outcome, maxBytes = mebibyte) => decodeOutcome(encodeOutcome(outcome, maxBytes))
const reply = (over: Partial<StoredReply> = {}): Outcome => ({
  kind: 'reply',
  reply: { status: 201, headers: [], body: new Uint8Array(), ...over },
})
const bytesOf = (outcome: Outcome) => (outcome.kind === 'reply' ? [...outcome.reply.body] : outcome)

/** A record with a right check sum, whatever its fields are. */
function sealed(...fields: number[]): Uint8Array {
  const record = Buffer.alloc(fields.length + 4)
  record.set(fields)
  record.writeUInt32BE(crc32(record.subarray(0, fields.length)), fields.length)
  return record
}

describe('a kept reply', () => {
  test('status, headers in their order and body bytes come back as they were', () => {
    const headers = fc.array(fc.tuple(fc.string(), fc.string({ unit: 'grapheme' })))
    const status = fc.integer({ min: 100, max: 999 })
    fc.assert(
      fc.property(status, headers, fc.uint8Array({ maxLength: 300 }), (code, pairs, body) => {
        const outcome = again(reply({ status: code, headers: pairs, body }))
        expect(outcome).toEqual({
          kind: 'reply',
          reply: { status: code, headers: pairs, body: expect.anything() },
        })
        expect(bytesOf(outcome)).toEqual([...body])
      }),
    )
  })

  test('all 256 byte values come back', () => {
    const body = Uint8Array.from({ length: 256 }, (_, index) => index)
    expect(bytesOf(again(reply({ body })))).toEqual([...body])
    expect(bytesOf(again(reply({ body: Buffer.from(body) })))).toEqual([...body])
  })

  test('white space and the spelling of numbers in a JSON body stay', () => {
    const text = '{"b":1,  "a":2, "c":1.0, "d":1e2}'
    expect(bytesOf(again(reply({ body: Buffer.from(text) })))).toEqual([...Buffer.from(text)])
  })

  test.each([
    [['content-type', 'application/json; charset=utf-8']],
    [['Content-Type', 'application/json; charset=utf-8']],
    [['content-type', 'text/csv; charset=latin1']],
    [['content-type', 'application/problem+json']],
    [['content-type', 'application/vnd.example.v2+json']],
    [['content-type', '']],
    [['__proto__', 'constructor']],
    [['location', '/orders/1']],
  ] as const)('the header %j keeps its letters', (header) => {
    const repeated = [header, ['x-other', '1'], header] as const
    expect(again(reply({ headers: repeated }))).toMatchObject({ reply: { headers: repeated } })
    expect(again(reply())).toMatchObject({ reply: { headers: [] } })
  })

  test('a usual reply costs at most 16 bytes besides its body', () => {
    const headers = [['content-type', 'application/json; charset=utf-8']] as const
    const record = encodeOutcome(reply({ headers, body: new Uint8Array(250) }), mebibyte)
    expect(record.length).toBeLessThanOrEqual(250 + 16)
  })

  test('the bytes written belong to the record, not to the caller', () => {
    const body = Buffer.from('first')
    const record = encodeOutcome(reply({ body }), mebibyte)
    body.fill(0)
    expect(bytesOf(decodeOutcome(record))).toEqual([...Buffer.from('first')])
  })
})

describe('a kept value', () => {
  test('every JSON value comes back equal', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(again({ kind: 'value', value })).toEqual({
          kind: 'value',
          value: JSON.parse(JSON.stringify(value)),
        })
      }),
    )
  })

  test('undefined, null and bytes are told apart', () => {
    expect(again({ kind: 'value', value: undefined })).toStrictEqual({ kind: 'value', value: undefined })
    expect(again({ kind: 'value', value: null })).toStrictEqual({ kind: 'value', value: null })
    const bytes = Uint8Array.of(0, 255, 10)
    expect(again({ kind: 'value', value: bytes })).toStrictEqual({ kind: 'value', value: bytes })
    expect(again({ kind: 'value', value: Buffer.from(bytes) })).toStrictEqual({ kind: 'value', value: bytes })
  })

  test('a lone surrogate in a text survives', () => {
    expect(again({ kind: 'value', value: 'a\ud83d' })).toEqual({ kind: 'value', value: 'a\ud83d' })
  })

  test('a member named __proto__ stays a member and touches no prototype', () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true},"constructor":1}')
    const decoded = again({ kind: 'value', value })
    expect(JSON.stringify(decoded)).toBe(
      '{"kind":"value","value":{"__proto__":{"admin":true},"constructor":1}}',
    )
    expect(Object.getPrototypeOf((decoded as { value: object }).value)).toBe(Object.prototype)
  })

  test('bytes read back are the reader’s own', () => {
    const record = encodeOutcome({ kind: 'value', value: Uint8Array.of(1, 2) }, mebibyte)
    const first = decodeOutcome(record)
    if (first.kind === 'value') (first.value as Uint8Array).fill(9)
    expect(decodeOutcome(record)).toEqual({ kind: 'value', value: Uint8Array.of(1, 2) })
  })
})

describe('a kept failure', () => {
  test('name, message, code and status come back, and nothing else of the error', () => {
    const failure = Object.assign(new Error('card declined \ud83d'), {
      code: 'DECLINED',
      status: 402,
      secret: 's',
    })
    const kept = { name: 'Error', message: 'card declined \ud83d', code: 'DECLINED', status: 402 }
    expect(again({ kind: 'failure', failure })).toStrictEqual({ kind: 'failure', failure: kept })
    const bare = { name: 'TypeError', message: '' }
    expect(again({ kind: 'failure', failure: bare })).toStrictEqual({ kind: 'failure', failure: bare })
  })
})

describe('an outcome that cannot be kept', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level += 1) deep = [deep]

  test.each([
    ['a cycle', cycle],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a toJSON that answers nothing', { toJSON: () => undefined }],
    [
      'a toJSON that throws',
      {
        toJSON: () => {
          throw new Error('no')
        },
      },
    ],
    ['a value nested beyond the stack', deep],
  ])('%s is done and not replayable, and nothing is thrown', (_, value) => {
    expect(again({ kind: 'value', value })).toStrictEqual({ kind: 'unreplayable' })
  })

  test('the limit counts the body, to the byte', () => {
    expect(again(reply({ body: new Uint8Array(100) }), 100)).toMatchObject({ kind: 'reply' })
    expect(again(reply({ body: new Uint8Array(101) }), 100)).toStrictEqual({
      kind: 'unreplayable',
      status: 201,
    })
    expect(again({ kind: 'value', value: 'x'.repeat(98) }, 100)).toMatchObject({ kind: 'value' })
    expect(again({ kind: 'value', value: 'x'.repeat(99) }, 100)).toStrictEqual({ kind: 'unreplayable' })
    expect(again({ kind: 'value', value: 'é'.repeat(50) }, 100)).toStrictEqual({ kind: 'unreplayable' })
    expect(again({ kind: 'value', value: new Uint8Array(101) }, 100)).toStrictEqual({ kind: 'unreplayable' })
    const failure = { name: 'Error', message: 'x'.repeat(200), status: 503 }
    expect(again({ kind: 'failure', failure }, 100)).toStrictEqual({ kind: 'unreplayable', status: 503 })
  })

  test('headers that no client would read are not kept', () => {
    expect(again(reply({ headers: [['x', 'y'.repeat(65_536)]] }))).toStrictEqual({
      kind: 'unreplayable',
      status: 201,
    })
  })

  test('it keeps the status it had, and comes back itself', () => {
    expect(again({ kind: 'unreplayable', status: 201 }, 0)).toStrictEqual({
      kind: 'unreplayable',
      status: 201,
    })
    expect(again({ kind: 'unreplayable' }, 0)).toStrictEqual({ kind: 'unreplayable' })
    expect(again(reply({ status: Number.NaN }))).toStrictEqual({ kind: 'unreplayable' })
  })
})

/** Written by version 1 and frozen: later releases must read every one of them. Never edit, only append. */
const frozen: readonly (readonly [what: string, record: string, outcome: Outcome])[] = [
  [
    'a value',
    '0101247b226964223a372c226e616d65223a22c3a9222c226c697374223a5b312c6e756c6c5d7d7e49c844',
    { kind: 'value', value: { id: 7, name: 'é', list: [1, null] } },
  ],
  ['undefined', '0102b6cc4292', { kind: 'value', value: undefined }],
  ['bytes', '0103030080ff390ad0fe', { kind: 'value', value: Uint8Array.of(0, 128, 255) }],
  [
    'a reply',
    '0104c901044002092f6f72646572732f370006782d636f73740133470d7b226f726465724964223a377d9fe0d1d0',
    reply({
      headers: [
        ['content-type', 'application/json; charset=utf-8'],
        ['location', '/orders/7'],
        ['x-cost', '3'],
        ['cache-control', 'no-store'],
      ],
      body: Buffer.from('{"orderId":7}'),
    }),
  ],
  ['a reply without headers and body', '0104cc010000b247ef4f', reply({ status: 204, body: Buffer.of() })],
  [
    'a failure',
    '0105487b226e616d65223a22436172644572726f72222c226d657373616765223a226465636c696e6564222c22636f6465223a224445434c494e4544222c22737461747573223a3430327d7078caf5',
    {
      kind: 'failure',
      failure: { name: 'CardError', message: 'declined', code: 'DECLINED', status: 402 },
    },
  ],
  ['a reply too large', '0106c801e951a91b', { kind: 'unreplayable', status: 200 }],
  ['a value without JSON', '010600a8d914a3', { kind: 'unreplayable' }],
]

describe('a stored record', () => {
  test.each(frozen)('%s, written by version 1, is read for ever', (_, record, outcome) => {
    expect(decodeOutcome(Buffer.from(record, 'hex'))).toEqual(outcome)
    expect(Buffer.from(encodeOutcome(outcome, mebibyte)).toString('hex')).toBe(record)
  })

  const record = encodeOutcome(reply({ headers: [['etag', '"1"']], body: Buffer.from('{"id":7}') }), mebibyte)

  test('cut short anywhere it is an error, never a shorter reply', () => {
    for (let length = 0; length < record.length; length += 1) {
      expect(() => decodeOutcome(record.subarray(0, length))).toThrow(corrupt)
    }
  })

  test('with bytes after its end it is an error', () => {
    expect(() => decodeOutcome(Buffer.concat([record, Buffer.of(0)]))).toThrow(corrupt)
    expect(() => decodeOutcome(Buffer.concat([record, record]))).toThrow(corrupt)
  })

  test('with any bit changed it is an error', () => {
    for (let bit = 0; bit < record.length * 8; bit += 1) {
      const changed = Uint8Array.from(record)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(() => decodeOutcome(changed)).toThrow(corrupt)
    }
  })

  test.each([
    ['no bytes', new Uint8Array()],
    ['an unknown version', sealed(2, 2)],
    ['version 0', sealed(0, 2)],
    ['an unknown kind', sealed(1, 99)],
    ['kind 0', sealed(1, 0)],
    ['JSON that is none', sealed(1, 1, 1, 0x7b)],
    ['a length beyond the end', sealed(1, 3, 200, 1, 0)],
    ['a length without an end', sealed(1, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)],
    ['bytes left over', sealed(1, 2, 0)],
    ['a header name that no table has', sealed(1, 4, 0x80 | 73, 1, 1, 63, 0, 0)],
    ['a header pair that no table has', sealed(1, 4, 0x80 | 73, 1, 1, 127, 0)],
    ['more headers than bytes', sealed(1, 4, 0x80 | 73, 1, 0xff, 0xff, 0xff, 0x7f)],
    ['a failure without a message', sealed(1, 5, 2, 0x7b, 0x7d)],
    ['a failure that is null', sealed(1, 5, 4, 0x6e, 0x75, 0x6c, 0x6c)],
  ])('%s is an error of its own, never an absent record and never a crash', (_, bytes) => {
    expect(() => decodeOutcome(bytes)).toThrow(corrupt)
  })

  test('random bytes never crash the reader', () => {
    const kind = fc.integer({ min: 0, max: 8 })
    fc.assert(
      fc.property(kind, fc.uint8Array({ maxLength: 40 }), (number, fields) => {
        try {
          decodeOutcome(sealed(1, number, ...fields))
        } catch (error) {
          expect(error).toEqual(corrupt)
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('the error of a record does not quote it', () => {
    const secret = encodeOutcome({ kind: 'value', value: 'secret' }, mebibyte)
    const broken = sealed(...secret.subarray(0, 3), ...Buffer.from('"secret+'))
    try {
      decodeOutcome(broken)
      expect.unreachable()
    } catch (error) {
      expect(String((error as Error).message)).not.toContain('secret')
      expect((error as Error).cause).toBeUndefined()
    }
  })
})
