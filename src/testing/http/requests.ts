/** What counts as the same request (rule 15), and what a body must be. */
import { equal } from '../check.js'
import { type HttpCase, test } from './case.js'
import { isProblem } from './problems.js'
import { isReplay } from './replays.js'
import type { Site } from './site.js'
import type { Sending } from './wire.js'

type Sent = Sending & { readonly path?: string }

const json = { headers: { 'content-type': 'application/json' } }
const first: Sent = { ...json, path: '/orders?a=1&b=2', body: '{"id":7,"items":[1,2],"note":null}' }

const sameRequests: readonly (readonly [string, Sent])[] = [
  ['members in another order', { ...first, body: '{"note":null,"items":[1,2],"id":7}' }],
  ['other white space', { ...first, body: '{ "id": 7,\n "items": [1, 2],\t"note": null }' }],
  ['parameters in another order', { ...first, path: '/orders?b=2&a=1' }],
]

const otherRequests: readonly (readonly [string, Sent])[] = [
  ['another value', { ...first, body: '{"id":8,"items":[1,2],"note":null}' }],
  ['an array in another order', { ...first, body: '{"id":7,"items":[2,1],"note":null}' }],
  ['a member that is missing instead of null', { ...first, body: '{"id":7,"items":[1,2]}' }],
  ['no body', { path: '/orders?a=1&b=2' }],
  ['another query', { ...first, path: '/orders?a=1&b=3' }],
  ['a parameter more', { ...first, path: '/orders?a=1&b=2&c=3' }],
  ['no query', { ...first, path: '/orders' }],
  ['another path', { ...first, path: '/refunds?a=1&b=2' }],
  ['another method', { ...first, method: 'PATCH' }],
]

const routes = [{}, { path: '/refunds' }, { method: 'PATCH' }]

export const requestCases: readonly HttpCase[] = [
  ...sameRequests.map(([what, sent]) =>
    test(15, `${what} is the same request: a replay`, routes, async (site) => {
      const got = await site.send(first)
      equal('the first', got.status, 201)
      isReplay(await site.send(sent), got)
      equal('runs', site.runs(), 1)
    }),
  ),
  ...otherRequests.map(([what, sent]) =>
    test(15, `${what} under the same key is refused with 422`, routes, (site) => mismatch(site, sent)),
  ),
  test(15, 'numbers that a double cannot tell apart are different requests', routes, async (site) => {
    equal('the first', (await site.send({ ...json, body: '{"id":9007199254740992}' })).status, 201)
    isProblem(await site.send({ ...json, body: '{"id":9007199254740993}' }), 422, 'KEY_REUSED', site.key)
  }),
  test(
    15,
    'one key under two operations is two intents',
    [{ options: { operation: 'order' } }, { path: '/refunds', options: { operation: 'refund' } }],
    async (site) => {
      equal('the order', (await site.send()).status, 201)
      equal('the refund', (await site.send({ path: '/refunds' })).replayed, false)
      equal('effects', await site.effects(), 2)
    },
  ),
  test(
    15,
    'the handler sees the body whole',
    [{ say: ({ body }) => ({ do: 'json', status: 201, value: body }) }],
    async (site) => {
      const value = { text: 'caf\u00e9 \u{1f511}', list: [1, [2, { three: null }]] }
      const got = await site.send({ json: value })
      equal('the body', JSON.parse(got.body.toString()), value)
    },
  ),
  test(
    15,
    'a body that is not JSON, but says so, is refused with 400, and costs no key',
    routes,
    async (site) => {
      const got = await site.send({ ...json, body: '{"id":' })
      equal('the status', got.status, 400)
      await costsNoKey(site)
    },
  ),
  test(
    15,
    'a body that is too large is refused with 413, and costs no key',
    [{ options: { maxBodyBytes: 10_000 } }],
    async (site) => {
      const got = await site.send({ json: 'x'.repeat(2_000_000) })
      equal('the status', got.status, 413)
      await costsNoKey(site)
    },
  ),
]

async function mismatch(site: Site, sent: Sent): Promise<void> {
  const got = await site.send(first)
  equal('the first', got.status, 201)
  isProblem(await site.send(sent), 422, 'KEY_REUSED', site.key)
  isReplay(await site.send(first), got)
  equal('runs', site.runs(), 1)
  equal('effects', await site.effects(), 1)
}

async function costsNoKey(site: Site): Promise<void> {
  equal('runs', site.runs(), 0)
  equal('effects', await site.effects(), 0)
  equal('the key afterwards', (await site.send({ json: { id: 7 } })).status, 201)
}
