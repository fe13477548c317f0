/** Outages: of the store, of an answer on its way, of the client (rules 8, 10 and 17). */
import { equal, holds } from '../check.js'
import { seededRandom } from '../clock.js'
import { type HttpCase, test } from './case.js'
import { isProblem } from './problems.js'
import { isReplay } from './replays.js'
import type { Site } from './site.js'
import { type Got, start } from './wire.js'

export const outageCases: readonly HttpCase[] = [
  test(17, 'while the store is down nothing runs: 503 with Retry-After', [{}], async (site) => {
    for (const point of ['claim', 'begin', 'find'] as const) site.faults.always(point, 'failBefore')
    isProblem(await site.send(), 503, 'STORE_UNAVAILABLE', site.key)
    equal('runs', site.runs(), 0)
    site.faults.heal()
    equal('once it is back', (await site.send()).status, 201)
    equal('effects', await site.effects(), 1)
  }),
  test(10, 'an outcome whose answer was lost is the answer', [{}], async (site) => {
    site.faults.next(site.writes, 'loseAnswer')
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
      for (const point of [site.writes, 'renew'] as const) site.faults.always(point, 'failBefore')
      const got = await site.send()
      isProblem(got, 503, 'STORE_UNAVAILABLE', site.key)
      if (site.covered) equal('effects', await site.effects(), 0)
      site.faults.heal()
      const later = await definite(() => site.send())
      equal('the retry', later.status, 201)
      isReplay(await site.send(), later)
      if (site.covered) equal('effects', await site.effects(), 1)
    },
    { options: { leaseMs: 500 } },
  ),
  test(8, 'a client that hangs up at any moment and comes back finds one effect', [{}], hangUps),
]

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
    // Some frameworks ask the connection, and answer nobody with less.
    holds('its body is whole', /^\{"orderId":"[\da-f-]{36}"\}$/.test(got.body.toString()))
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
