/** What an operator may say, and what is made of it (rules 3 and 9). */
import { isRetrysafeError, retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { movableClock } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import { fingerprintOfValue } from '../../dist/fingerprint.js'

const name = { scope: 's', key: 'k', generation: 1 }

/** The code of what a call rejects with; a call that throws at once has no promise to reject. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )
  return isRetrysafeError(error) ? error.code : String(error)
}

/** An instance whose operator is told anything. */
function told() {
  const safe = retrysafe({ store: memory() })
  const { list, show, release, resolve } = safe
  type Anything = (...values: unknown[]) => Promise<unknown>
  return { list, show, release, resolve } as unknown as Record<
    'list' | 'show' | 'release' | 'resolve',
    Anything
  >
}

test.each([
  [null],
  ['unknown'],
  [{ limit: 0 }],
  [{ limit: 10_001 }],
  [{ limit: 1.5 }],
  [{ limit: '5' }],
  [{ limit: Number.NaN }],
  [{ states: 'done' }],
  [{ states: ['toString'] }],
  [{ states: ['1) or (1 = 1'] }],
])('list(%j) is refused before the store hears of it', async (filter) => {
  expect(await codeOf(told().list(filter))).toBe('OPTION_INVALID')
})

test.each([
  [undefined, 'OPTION_INVALID'],
  ['k', 'OPTION_INVALID'],
  [{ scope: 's' }, 'KEY_INVALID'],
  [{ scope: 's', key: 'k\0' }, 'KEY_INVALID'],
  [{ key: 'k' }, 'SCOPE_INVALID'],
  [{ key: 'k', scope: 's', operation: 5 }, 'OPTION_INVALID'],
])('show, release and resolve refuse the name %j', async (wrong, code) => {
  const { show, release, resolve } = told()
  expect(await codeOf(show(wrong))).toBe(code)
  const seen = typeof wrong === 'object' ? { ...wrong, generation: 1 } : wrong
  expect(await codeOf(release(seen))).toBe(code)
  expect(await codeOf(resolve(seen, { done: true, value: 1 }))).toBe(code)
})

test.each([[undefined], ['1'], [1.5], [-1], [2 ** 53], [Number.NaN]])(
  'a verdict on generation %j is refused',
  async (generation) => {
    const { release, resolve } = told()
    expect(await codeOf(release({ ...name, generation }))).toBe('OPTION_INVALID')
    expect(await codeOf(resolve({ ...name, generation }, { done: false }))).toBe('OPTION_INVALID')
  },
)

const reply = { status: 201, headers: [], body: new Uint8Array() }

test.each([
  [undefined],
  [null],
  [{}],
  [{ done: 'yes' }],
  [{ done: true, reply: 'created' }],
  [{ done: true, value: 1, reply }],
  [{ done: true, reply: { ...reply, status: 199 } }],
  [{ done: true, reply: { ...reply, status: 304 } }],
  [{ done: true, reply: { ...reply, status: '201' } }],
  [{ done: true, reply: { ...reply, status: 204, body: Buffer.from('x') } }],
  [{ done: true, reply: { ...reply, body: 'text' } }],
  [{ done: true, reply: { ...reply, headers: { location: '/' } } }],
  [{ done: true, reply: { ...reply, headers: [['location', '/\r\nset-cookie: a=1']] } }],
  [{ done: true, reply: { ...reply, headers: [['a b', '1']] } }],
  [{ done: true, reply: { ...reply, headers: [['location']] } }],
])('the resolution %j is refused', async (resolution) => {
  expect(await codeOf(told().resolve(name, resolution))).toBe('OPTION_INVALID')
})

test('a reply that an operator writes down is kept as a reply of a handler is', async () => {
  const clock = movableClock()
  const store = memory({ clock })
  const safe = retrysafe({ store, clock, onOwnerLost: 'unknown' })
  const identity = { scope: 's', key: 'k' }
  const fingerprint = fingerprintOfValue(undefined).bytes()
  await store.claim({ identity, owner: 'gone', fingerprint, leaseMs: 10, callerNowMs: clock.now() })
  await clock.advance(20)
  expect(await codeOf(safe.run(identity, () => 'ran'))).toBe('OUTCOME_UNKNOWN')
  const [stuck] = await safe.list({ states: ['unknown'] })
  if (stuck === undefined) throw new Error('the record is not unknown')
  const headers = [
    ['Location', '/orders/1'],
    ['Set-Cookie', 'session=1'],
    ['Connection', 'close'],
    ['Content-Length', '3'],
    ['X-Charge', 'c1'],
  ] as const
  expect(await safe.resolve(stuck, { done: true, reply: { ...reply, headers } })).toBe(true)
  expect(await safe.show(identity)).toMatchObject({
    outcome: {
      kind: 'reply',
      reply: {
        status: 201,
        headers: [
          ['location', '/orders/1'],
          ['x-charge', 'c1'],
        ],
      },
    },
  })
})
