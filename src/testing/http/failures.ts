/** Failures of the work: which free the key, and which are kept (rule 11). */
import { equal } from '../check.js'
import { type HttpCase, test } from './case.js'
import type { Said } from './harness.js'
import { isReplay } from './replays.js'
import type { Site } from './site.js'

/** Statuses below 500 that say something about this moment or this caller only. */
const passing = [401, 403, 407, 408, 409, 425, 429]

export const failureCases: readonly HttpCase[] = [
  ...[500, 503, ...passing].map((status) =>
    test(11, `a status ${status} of the handler frees the key`, [{ say: once(refusal(status)) }], (site) =>
      freed(site, status),
    ),
  ),
  test(
    11,
    'a throw of the handler frees the key, and the framework answers it',
    [{ say: once({ do: 'throw', error: new Error('planned') }) }],
    (site) => freed(site, 500),
    { needs: 'throw' },
  ),
  test(
    11,
    "a failure is kept under `keep: 'all'`, and the work never runs again",
    [{ options: { keep: 'all' }, say: once(refusal(500)) }],
    async (site) => {
      const got = await site.send()
      isReplay(await site.send(), got)
      equal('runs', site.runs(), 1)
      if (site.covered) equal('effects', await site.effects(), 0)
    },
  ),
  test(
    11,
    'a failure past the point of no return is kept, and the work never runs again',
    [
      {
        say: ({ attempt }) => {
          attempt?.keepFailure()
          return refusal(502)
        },
      },
    ],
    async (site) => {
      const got = await site.send()
      equal('the status', got.status, 502)
      isReplay(await site.send(), got)
      equal('runs', site.runs(), 1)
    },
  ),
]

/** A handler that answers so at first, and well from then on. */
function once(said: Said) {
  return ({ run }: { readonly run: number }): Said =>
    run === 1 ? said : { do: 'json', status: 201, value: { run } }
}

async function freed(site: Site, status: number): Promise<void> {
  const got = await site.send()
  equal('the first', { status: got.status, replayed: got.replayed }, { status, replayed: false })
  if (site.covered) equal('effects of the failure', await site.effects(), 0)
  const again = await site.send()
  equal('the retry', { status: again.status, replayed: again.replayed }, { status: 201, replayed: false })
  isReplay(await site.send(), again)
  equal('runs', site.runs(), 2)
  if (site.covered) equal('effects', await site.effects(), 1)
}

function refusal(status: number): Said {
  return { do: 'json', status, value: { error: 'planned' } }
}
