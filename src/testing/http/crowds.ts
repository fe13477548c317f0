/** Many requests of one intent at once (rules 1, 6 and 16). */
import { equal } from '../check.js'
import { expectOnce } from '../expect-once.js'
import { crowds } from '../store/claims.js'
import { type HttpCase, test } from './case.js'
import type { Said } from './harness.js'
import { isProblem } from './problems.js'
import { isReplay } from './replays.js'

const gate = gates()

export const crowdCases: readonly HttpCase[] = [
  ...crowds.map((times) =>
    test(1, `${times} concurrent requests take effect once`, [{}], async (site) => {
      await expectOnce({
        times,
        attempt: () => site.send({ json: { totalCents: 1 } }),
        effects: () => site.effects(),
        sequential: true,
      })
    }),
  ),
  test(
    6,
    '50 concurrent requests that wait all get the one answer',
    [{}],
    async (site) => {
      const { replays } = await expectOnce({
        times: 50,
        attempt: () => site.send(),
        effects: () => site.effects(),
      })
      equal('replays', replays, 49)
    },
    { options: { whileRunning: { waitMs: 20_000 } } },
  ),
  test(
    6,
    'a duplicate of a running request is told to come back: 409 with Retry-After',
    [{ say: gate.wait }],
    async (site) => {
      const { entered, open } = gate.next()
      const running = site.send()
      await entered
      isProblem(await site.send(), 409, 'IN_PROGRESS', site.key)
      open()
      const got = await running
      equal('the first', { status: got.status, replayed: got.replayed }, { status: 201, replayed: false })
      isReplay(await site.send(), got)
      equal('runs', site.runs(), 1)
    },
  ),
  test(16, 'another request under a running key is refused with 422', [{ say: gate.wait }], async (site) => {
    const { entered, open } = gate.next()
    const running = site.send({ json: { id: 1 } })
    await entered
    isProblem(await site.send({ json: { id: 2 } }), 422, 'KEY_REUSED', site.key)
    open()
    equal('the first', (await running).status, 201)
    equal('effects', await site.effects(), 1)
  }),
  test(6, 'another key is not held up by a running one', [{ say: gate.wait }], async (site) => {
    const first = gate.next()
    const running = site.send()
    await first.entered
    const second = gate.next()
    const other = site.send({ key: `${site.key}-other` })
    await second.entered
    second.open()
    equal('the other', (await other).status, 201)
    first.open()
    equal('the first', (await running).status, 201)
  }),
]

/** Handlers that wait until the case lets them go. */
function gates() {
  const queue: { enter: () => void; opened: Promise<void> }[] = []

  function next() {
    let enter: () => void = () => undefined
    let open: () => void = () => undefined
    const entered = new Promise<void>((resolve) => {
      enter = resolve
    })
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    queue.push({ enter, opened })
    return { entered, open }
  }

  async function wait(): Promise<Said> {
    const mine = queue.shift()
    mine?.enter()
    await mine?.opened
    return { do: 'json', status: 201, value: { done: true } }
  }

  return { next, wait }
}
