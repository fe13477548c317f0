/** Identity and bytes: two keys are one only if their bytes are, and an outcome comes back as it went in (rules 9, 12 and 14). */
import { randomBytes, randomUUID } from 'node:crypto'
import { equal, present } from '../check.js'
import { type StoreCase, test } from './case.js'
import { claimOf, hold, look, minuteMs } from './requests.js'
import { fresh } from './room.js'

/** One code point beyond the 16 bits of a code unit, four bytes in UTF-8. */
const astral = '\u{1f511}'

/** Keys that some collation, padding, folding, prefix index or number format takes for one another. */
function confusable(prefix: string): readonly string[] {
  const long = `${prefix}-${'x'.repeat(128)}`
  return [
    ...['Ab', 'aB', 'AB', 'ab', 'ab ', ' ab', 'ab\u00a0'].map((text) => `${prefix}-${text}`),
    // NFC and NFD of one letter, its base, and a ligature that compatibility folding takes apart.
    ...['\u00e9', 'e\u0301', 'e', 'E', '\ufb01', 'fi'].map((text) => `${prefix}-${text}`),
    ...['\u00df', 'ss', '\u0131', 'i', 'I', '\u0130'].map((text) => `${prefix}:${text}`),
    ...['1', '01', '1.0', '1e0'].map((text) => `${prefix}${text}`),
    ...["'", '"', '\\', '%', '_', '{a}', '{', '}', ':', '$1'].map((text) => `${prefix}${text}`),
    `${long}1`,
    `${long}2`,
    astral.repeat(200) + prefix,
    `${astral.repeat(199)}x${prefix}`,
  ]
}

export const identityCases: readonly StoreCase[] = [
  test(14, 'keys that only look alike are different records', [], async ({ store }) => {
    const keys = confusable(randomUUID())
    await distinct(
      store,
      keys.map((key) => ({ key, scope: 'suite' })),
    )
  }),
  test(14, 'scopes that only look alike are different records', [], async ({ store }) => {
    const key = randomUUID()
    await distinct(
      store,
      confusable('s').map((scope) => ({ key, scope })),
    )
  }),
  test(14, 'key and scope are joined so that no pair reads as another', [], async ({ store }) => {
    const id = randomUUID()
    await distinct(store, [
      { key: `${id}a`, scope: 'bc' },
      { key: `${id}ab`, scope: 'c' },
      { key: `${id}abc`, scope: '1' },
      { key: `${id}a:b`, scope: 'c' },
      { key: `${id}a`, scope: 'b:c' },
      { key: 'bc', scope: `${id}a` },
      { key: 'c', scope: `${id}ab` },
      { key: `1:${id}`, scope: '2' },
      { key: id, scope: '1:2' },
    ])
  }),
  test(14, 'key and scope of 255 code points work, of one byte and of four', [], async ({ store }) => {
    const random = randomUUID()
    const letters = random + 'k'.repeat(255 - random.length)
    const signs = random + astral.repeat(255 - random.length)
    await distinct(store, [
      { key: letters, scope: letters },
      { key: signs, scope: signs },
      { key: signs, scope: astral.repeat(255) },
      { key: letters, scope: 's' },
      { key: random, scope: signs },
    ])
  }),
  test(9, 'an outcome comes back byte for byte, each of the 256 values', [], ({ store }) =>
    keeps(
      store,
      Uint8Array.from({ length: 256 }, (_, index) => index),
    ),
  ),
  test(9, 'an empty outcome comes back empty, and not as none', [], ({ store }) =>
    keeps(store, new Uint8Array(0)),
  ),
  test(12, 'an outcome of 1 MiB comes back whole', [], ({ store }) => keeps(store, randomBytes(1024 * 1024))),
  test(
    9,
    'an outcome that is a view into a larger buffer comes back without its surroundings',
    [],
    ({ store }) => keeps(store, randomBytes(300).subarray(100, 200)),
  ),
  test(15, 'a fingerprint comes back byte for byte', [], async ({ store }) => {
    const fingerprint = Uint8Array.from({ length: 33 }, (_, index) => 255 - index * 7)
    const { identity } = await hold(store, fresh(), { fingerprint })
    equal('the fingerprint', (await look(store, identity)).fingerprint, fingerprint)
  }),
]

/** Each identity gets a claim of its own, and answers with its own outcome afterwards. */
async function distinct<Tx>(
  store: Parameters<typeof hold<Tx>>[0],
  identities: readonly { key: string; scope: string }[],
): Promise<void> {
  const requests = identities.map((identity) => claimOf(identity))
  for (const request of requests) {
    const { claimed } = await store.claim(request)
    equal(`the claim of ${JSON.stringify(request.identity)}`, claimed, true)
  }
  for (const [index, { identity, owner }] of requests.entries()) {
    await store.complete({ identity, owner, outcome: Uint8Array.of(index), retainMs: minuteMs })
  }
  for (const [index, { identity }] of requests.entries()) {
    const name = `the outcome of ${JSON.stringify(identity)}`
    equal(name, (await look(store, identity)).outcome, Uint8Array.of(index))
  }
}

async function keeps<Tx>(store: Parameters<typeof hold<Tx>>[0], outcome: Uint8Array): Promise<void> {
  const { identity, owner } = await hold(store, fresh())
  await store.complete({ identity, owner, outcome, retainMs: minuteMs })
  const found = present('the outcome', (await look(store, identity)).outcome)
  equal('its length', found.length, outcome.length)
  equal('its bytes', found, outcome)
}
