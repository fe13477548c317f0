/** What a handler returns (rule 12), and what is refused where it is written down. */
import { describe, expect, test } from 'vitest'
import { keptNames, keptReply } from '../../dist/http/headers.js'
import { isReply, reply } from '../../dist/http/reply.js'

const text = (body: Uint8Array) => Buffer.from(body).toString()
const invalid = expect.objectContaining({ code: 'OPTION_INVALID' })

describe('reply', () => {
  test('a body is what its kind says', () => {
    const bytes = Uint8Array.of(0, 128, 255)
    const kinds: [unknown, string | undefined, string | Uint8Array][] = [
      [undefined, undefined, ''],
      ['ü', 'text/plain; charset=utf-8', 'ü'],
      ['', 'text/plain; charset=utf-8', ''],
      [bytes, 'application/octet-stream', bytes],
      [bytes.buffer, 'application/octet-stream', bytes],
      [new DataView(bytes.buffer, 1), 'application/octet-stream', bytes.subarray(1)],
      [null, 'application/json; charset=utf-8', 'null'],
      [{ b: 1, a: [undefined] }, 'application/json; charset=utf-8', '{"b":1,"a":[null]}'],
      [0, 'application/json; charset=utf-8', '0'],
    ]
    for (const [body, type, expected] of kinds) {
      const made = reply(200, body)
      expect(made.headers).toEqual(type === undefined ? [] : [['content-type', type]])
      expect(Buffer.from(made.body).equals(Buffer.from(expected))).toBe(true)
    }
  })

  test('what is changed after it was made changes nothing', () => {
    const body = { total: 1 }
    const bytes = Uint8Array.of(1)
    const made = [reply(200, body), reply(200, bytes), reply(200, bytes.buffer)]
    body.total = 2
    bytes[0] = 2
    expect(text(made[0]?.body ?? new Uint8Array())).toBe('{"total":1}')
    expect(made.slice(1).map((one) => one.body[0])).toEqual([1, 1])
    expect(Object.isFrozen(made[0])).toBe(true)
    expect(Object.isFrozen(made[0]?.headers)).toBe(true)
  })

  test('a header names the type, and several values are several lines', () => {
    const made = reply(200, {}, { 'Content-Type': 'application/vnd.x+json', 'X-A': ['1', '2'], 'x-n': 3 })
    expect(made.headers).toEqual([
      ['content-type', 'application/vnd.x+json'],
      ['x-a', '1'],
      ['x-a', '2'],
      ['x-n', '3'],
    ])
  })

  test('a body that cannot be encoded throws while the work can still be undone', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    const bodies = [cycle, 1n, () => 1, Symbol('s'), new Blob(['x']), new ReadableStream(), process.stdin]
    for (const body of bodies) expect(() => reply(200, body)).toThrow(invalid)
  })

  test('a status or header that cannot be sent is refused', () => {
    for (const status of [100, 199, 600, 200.5, Number.NaN, '200' as never]) {
      expect(() => reply(status)).toThrow(invalid)
    }
    for (const status of [204, 205, 304]) expect(() => reply(status, {})).toThrow(invalid)
    const headers = [
      { 'x-a': 'a\r\nset-cookie: b=1' },
      { 'x-a': 'a\u0000' },
      { 'x-a': ['ok', '\u2028'] },
      { 'bad name': 'a' },
      { '': 'a' },
      { 'content-length': '1' },
      { 'Transfer-Encoding': 'chunked' },
    ]
    for (const one of headers) expect(() => reply(200, 'x', one as never)).toThrow(invalid)
  })

  test('a reply of another copy of the package is a reply; what looks like one is not', () => {
    expect(isReply(reply(204))).toBe(true)
    expect(isReply({ [Symbol.for('retrysafe.reply')]: true })).toBe(true)
    for (const other of [{ status: 200, headers: [], body: new Uint8Array() }, null, 'x', undefined]) {
      expect(isReply(other)).toBe(false)
    }
  })

  test('a record keeps what describes the reply, and what was named', () => {
    const names = keptNames(['X-Order'])
    const headers = {
      location: '/1',
      'X-Order': '7',
      'x-trace': 't',
      'set-cookie': 'a=1',
      date: 'now',
      vary: 'a',
    }
    const kept = keptReply(reply(201, 'x', headers), names)
    expect(kept.headers.map(([name]) => name).sort()).toEqual(['content-type', 'location', 'vary', 'x-order'])
    expect(keptReply({ status: 205, headers: [], body: Uint8Array.of(1) }, names).body).toHaveLength(0)
  })

  test('cookies, dates, framing and the marker are never kept, also when named', () => {
    const never = [
      'Set-Cookie',
      'date',
      'Content-Length',
      'transfer-encoding',
      'Connection',
      'Idempotent-Replayed',
    ]
    for (const name of [...never, 'no header', 7 as never]) expect(() => keptNames([name])).toThrow(invalid)
  })
})
