/** Replays: status, kept headers and bytes as the first caller got them, and a marker (rule 9). */
import { equal, holds } from '../check.js'
import { keptAnswers, statusOf } from './answers.js'
import { type HttpCase, test } from './case.js'
import type { Said } from './harness.js'
import { isProblem } from './problems.js'
import type { Got } from './wire.js'

/** What a replay must repeat, besides status and body. */
const keptNames = ['content-type', 'content-disposition', 'location', 'etag', 'vary', 'cache-control']

export const replayCases: readonly HttpCase[] = [
  ...Object.entries(keptAnswers).map(([what, said]) =>
    test(
      9,
      `${what} (${statusOf(said)}) is replayed as it was`,
      [{ say: () => said }],
      async (site) => {
        const first = await site.send({ json: { totalCents: 1 } })
        equal('the status', first.status, statusOf(said))
        equal('the marker of the first', 'idempotent-replayed' in first.headers, false)
        for (let retry = 0; retry < 2; retry += 1)
          isReplay(await site.send({ json: { totalCents: 1 } }), first)
        equal('runs', site.runs(), 1)
      },
      { needs: said.do },
    ),
  ),
  test(
    9,
    'cookies, dates and unknown headers of the first answer are not replayed',
    [{ say: () => withHeaders({ 'set-cookie': 'session=alice', 'x-request-id': '1', etag: '"7"' }) }],
    async (site) => {
      const first = await site.send()
      const again = await site.send()
      isReplay(again, first)
      equal('the cookie', again.headers['set-cookie'], undefined)
      equal('the request id', again.headers['x-request-id'], undefined)
      equal('the etag', again.headers.etag, '"7"')
    },
  ),
  test(
    9,
    'headers that a route names are replayed too',
    [{ options: { replayHeaders: ['X-Order'] }, say: () => withHeaders({ 'x-order': '7' }) }],
    async (site) => {
      await site.send()
      equal('the header', (await site.send()).headers['x-order'], '7')
    },
  ),
  test(
    12,
    'an answer too large to keep reaches its first caller whole, and the work never runs again',
    [{ options: { maxReplyBytes: 100 }, say: () => ({ do: 'text', status: 201, text: 'x'.repeat(1000) }) }],
    async (site) => {
      const first = await site.send()
      equal('the first', first.status, 201)
      const again = await site.send()
      isProblem(again, 409, 'NOT_REPLAYABLE', site.key)
      equal('the original status', JSON.parse(again.body.toString()).originalStatus, 201)
      equal('runs', site.runs(), 1)
    },
  ),
  test(
    9,
    'an answer as large as may be kept is replayed',
    [
      {
        options: { maxReplyBytes: 1000 },
        say: () => ({ do: 'text', status: 201, text: 'x'.repeat(1000) }),
      },
    ],
    async (site) => isReplay(await afterFirst(site), await site.send()),
  ),
  test(
    9,
    'a reply to HEAD-like conditions is the whole answer: If-None-Match does not turn a replay into a 304',
    [{ say: () => withHeaders({ etag: '"7"' }) }],
    async (site) => {
      const headers = { 'if-none-match': '"7"' }
      const first = await site.send({ headers })
      equal('the first', first.status, 201)
      isReplay(await site.send({ headers }), first)
    },
  ),
]

function withHeaders(headers: Record<string, string>): Said {
  return { do: 'json', status: 201, value: { orderId: 7 }, headers }
}

async function afterFirst(site: { send(): Promise<Got> }): Promise<Got> {
  await site.send()
  return site.send()
}

/** Fails unless the answer is a replay of the first: equal where it must be, framed for itself, marked. */
export function isReplay(got: Got, first: Got): void {
  equal('the marker', got.replayed, true)
  equal('the status', got.status, first.status)
  equal('the body', got.body, first.body)
  for (const name of keptNames) equal(`the header ${name}`, got.headers[name], first.headers[name])
  equal('transfer coding', got.headers['transfer-encoding'], undefined)
  const length = got.headers['content-length']
  holds('the length is that of the body', length === undefined || Number(length) === got.body.length)
}
