/** Keys and scopes: what is refused before the store is asked, and whose key it is (rules 14 and 15). */
import type { ErrorCode } from '../../errors.js'
import { equal, holds } from '../check.js'
import { type HttpCase, test } from './case.js'
import { isProblem } from './problems.js'
import type { Site } from './site.js'
import type { Sending } from './wire.js'

const refusedKeys: readonly (readonly [string, Sending, ErrorCode])[] = [
  ['a missing key', { key: null }, 'KEY_REQUIRED'],
  ['a blank key', { key: '  ' }, 'KEY_INVALID'],
  ['an empty quoted key', { key: '""' }, 'KEY_INVALID'],
  ['an unbalanced quote', { key: '"k1' }, 'KEY_INVALID'],
  ['a key of 256 characters', { key: 'k'.repeat(256) }, 'KEY_INVALID'],
  ['a key of 10 000 characters', { key: 'k'.repeat(10_000) }, 'KEY_INVALID'],
  ['two header lines', { key: ['k1', 'k1'] }, 'KEY_INVALID'],
  ['two different header lines', { key: ['k1', 'k2'] }, 'KEY_INVALID'],
  ['a comma', { key: 'k1,k2' }, 'KEY_INVALID'],
  ['a space inside', { key: 'k1 k2' }, 'KEY_INVALID'],
  ['a tab inside', { key: 'k1\tk2' }, 'KEY_INVALID'],
  ['a letter beyond ASCII', { key: 'caf\u00e9' }, 'KEY_INVALID'],
]

export const keyCases: readonly HttpCase[] = [
  ...refusedKeys.map(([what, sending, code]) =>
    test(14, `${what} is refused with 400 before the store is asked`, [{}], async (site) => {
      const got = await site.send({ json: { totalCents: 1 }, ...sending })
      isProblem(got, 400, code)
      await untouched(site)
    }),
  ),
  test(14, 'a key of 255 characters works', [{}], async (site) => {
    const key = site.key.padEnd(255, 'k')
    equal('the first', (await site.send({ key })).status, 201)
    equal('the retry', (await site.send({ key })).replayed, true)
  }),
  test(14, 'a quoted key and the bare one are the same key', [{}], async (site) => {
    const first = await site.send({ key: `"${site.key}"` })
    const again = await site.send()
    equal('the retry', { replayed: again.replayed, body: again.body }, { replayed: true, body: first.body })
    equal('effects', await site.effects(), 1)
  }),
  test(14, 'one key of two callers is two intents: nobody sees the answer of another', [{}], async (site) => {
    const alice = await site.send({ caller: 'alice' })
    const bob = await site.send({ caller: 'bob' })
    equal('replayed', bob.replayed, false)
    holds('the answers differ', !alice.body.equals(bob.body))
    equal("alice's again", (await site.send({ caller: 'alice' })).body, alice.body)
    equal("bob's again", (await site.send({ caller: 'bob' })).body, bob.body)
    equal('effects', await site.effects(), 2)
  }),
  test(14, 'a caller without a name is refused, and the work does not run', [{}], async (site) => {
    isProblem(await site.send({ caller: '' }), 500, 'SCOPE_INVALID')
    await untouched(site)
  }),
  test(14, 'PUT honours a key that it is sent and needs none', [{ method: 'PUT' }], async (site) => {
    const first = await site.send({ method: 'PUT' })
    const again = await site.send({ method: 'PUT' })
    equal('the retry', { replayed: again.replayed, body: again.body }, { replayed: true, body: first.body })
    equal('without a key', (await site.send({ method: 'PUT', key: null })).status, 201)
    equal('runs', site.runs(), 2)
  }),
  test(
    14,
    'a key that is not required may be left out, and protects where it is sent',
    [{ options: { required: false } }],
    async (site) => {
      for (let call = 0; call < 2; call += 1)
        equal('without', (await site.send({ key: null })).replayed, false)
      equal('the first', (await site.send()).replayed, false)
      equal('the retry', (await site.send()).replayed, true)
      equal('runs', site.runs(), 3)
    },
  ),
  test(
    14,
    'GET passes, with a key and without',
    [{ method: 'GET' }],
    async (site) => {
      for (const key of [site.key, null]) {
        const got = await site.send({ method: 'GET', key })
        equal('the answer', { status: got.status, replayed: got.replayed }, { status: 201, replayed: false })
      }
      equal('runs', site.runs(), 2)
    },
    { needs: 'around' },
  ),
]

/** The store was not asked, nothing ran. */
async function untouched({ faults, runs, effects }: Site): Promise<void> {
  equal('claims', faults.calls('claim') + faults.calls('begin') + faults.calls('find'), 0)
  equal('runs', runs(), 0)
  equal('effects', await effects(), 0)
}
