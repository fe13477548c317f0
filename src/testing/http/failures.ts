/** Failures: of the work, of the store, of the client (rules 8, 10, 11, 16 and 17). */
import { equal, holds } from '../check.js'
import { seededRandom } from '../clock.js'
import type { SuiteCase } from '../suite.js'
import type { HttpHarness, Said } from './harness.js'
import { isProblem } from './problems.js'
import { isReplay } from './replays.js'
import { type HttpTest, isCovered, type Site } from './site.js'
import { type Got, start } from './wire.js'

/** Statuses below 500 that say something about this moment or this caller only. */
const passing = [401, 403, 407, 408, 409, 425, 429]

export function failureCases<Tx extends object>(test: HttpTest<Tx>, harness: HttpHarness<Tx>): SuiteCase[] {
  const covered = isCovered(harness)
  const writes = harness.handlers === 'replies' || harness.mode === 'transaction' ? 'save' : 'complete'

  /** A handler that answers so at first, and well from then on. */
  function once(said: Said) {
    let runs = 0
    return (): Said => {
      runs += 1
      return runs === 1 ? said : { do: 'json', status: 201, value: { run: runs } }
    }
  }

  async function freed(site: Site, status: number): Promise<void> {
    const got = await site.send()
    equal('the first', { status: got.status, replayed: got.replayed }, { status, replayed: false })
    if (covered) equal('effects of the failure', await site.effects(), 0)
    const again = await site.send()
    equal('the retry', { status: again.status, replayed: again.replayed }, { status: 201, replayed: false })
    isReplay(await site.send(), again)
    equal('runs', site.runs(), 2)
    if (covered) equal('effects', await site.effects(), 1)
  }

  return [
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
      { skip: harness.lacks?.throw },
    ),
    test(
      11,
      "a failure is kept under `keep: 'all'`, and the work never runs again",
      [{ options: { keep: 'all' }, say: once(refusal(500)) }],
      async (site) => {
        const got = await site.send()
        isReplay(await site.send(), got)
        equal('runs', site.runs(), 1)
        if (covered) equal('effects', await site.effects(), 0)
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
    test(17, 'while the store is down nothing runs: 503 with Retry-After', [{}], async (site) => {
      for (const point of ['claim', 'begin', 'find'] as const) site.faults.always(point, 'failBefore')
      isProblem(await site.send(), 503, 'STORE_UNAVAILABLE', site.key)
      equal('runs', site.runs(), 0)
      site.faults.heal()
      equal('once it is back', (await site.send()).status, 201)
      equal('effects', await site.effects(), 1)
    }),
    test(10, 'an outcome whose answer was lost is the answer', [{}], async (site) => {
      site.faults.next(writes, 'loseAnswer')
      const got = await site.send()
      equal('the first', { status: got.status, replayed: got.replayed }, { status: 201, replayed: false })
      equal('faults', site.faults.fired(), 1)
      isReplay(await site.send(), got)
      equal('effects', await site.effects(), 1)
    }),
    test(
      8,
      'an outcome that could not be stored is not told: 503, and a later retry gets one',
      [{}],
      async (site) => {
        for (const point of [writes, 'renew'] as const) site.faults.always(point, 'failBefore')
        const got = await site.send()
        isProblem(got, 503, 'STORE_UNAVAILABLE', site.key)
        if (covered) equal('effects', await site.effects(), 0)
        site.faults.heal()
        const later = await definite(() => site.send())
        equal('the retry', later.status, 201)
        isReplay(await site.send(), later)
        if (covered) equal('effects', await site.effects(), 1)
      },
      { options: { leaseMs: 500 } },
    ),
    test(8, 'a client that hangs up at any moment and comes back finds one effect', [{}], hangUps),
  ]
}

function refusal(status: number): Said {
  return { do: 'json', status, value: { error: 'planned' } }
}

/** Cuts requests off at moments that chance picks, and asks again until there is an answer. */
async function hangUps(site: Site): Promise<void> {
  const random = seededRandom(7)
  let answered = 0
  for (let round = 0; round < 20; round += 1) {
    const key = `${site.key}-${round}`
    const cut = start(`${site.url}/orders`, { key, json: { round } })
    const over = new Promise<void>((resolve) => cut.once('close', () => resolve()))
    cut.once('error', () => undefined)
    cut.once('response', (response) => {
      answered += 1
      response.resume()
    })
    // Turns of the event loop: the server in this process takes steps meanwhile, so that every stage of a request is met.
    for (let turns = Math.floor(random.fraction() * 25); turns > 0; turns -= 1) await turn()
    cut.destroy()
    await over
    const got = await definite(() => site.send({ key, json: { round } }))
    equal('the retry', got.status, 201)
    isReplay(await site.send({ key, json: { round } }), got)
    equal('effects', await site.effects(key), 1)
  }
  holds('not every request was answered before it was cut off', answered < 20)
}

/** Asks until the answer is neither "in progress" nor "unavailable". */
export async function definite(send: () => Promise<Got>): Promise<Got> {
  for (;;) {
    const got = await send()
    if (got.headers['retry-after'] === undefined) return got
    await turn()
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
