/** Many attempts of one intent at once, through `retrysafe()`: one effect, and every answer the same (rules 1, 6 and 16). */
import { randomUUID } from 'node:crypto'
import type { Intent } from '../../intent.js'
import type { Mode } from '../../options.js'
import { equal, holds, present } from '../check.js'
import { type Need, type StoreCase, test } from './case.js'
import { crowds } from './claims.js'
import type { Room } from './room.js'
import { type Attempts, attempt, type End } from './tasks.js'

const needs: readonly Need[] = ['transactions', 'ledger']
export const modes: readonly Mode[] = ['transaction', 'lease']
/** Longer than any of these races lasts; whoever waits that long has found something. */
const waitMs = 20_000

export const raceCases: readonly StoreCase[] = modes.flatMap((mode) => [
  ...crowds.map((times) =>
    test(1, `${times} concurrent attempts in ${mode} mode take effect once`, needs, async (room) => {
      const intent = freshIntent()
      await conclude(
        room,
        mode,
        intent,
        await attempt(room.safe(), room.ledger(), task(room, mode, intent, times)),
      )
      await oneEffect(room, intent)
    }),
  ),
  ...crowds.map((times) =>
    test(
      6,
      `${times} concurrent attempts in ${mode} mode that wait all get the one outcome`,
      needs,
      async (room) => {
        const intent = freshIntent()
        const safe = room.safe({ whileRunning: { waitMs } })
        everyAnswer(await attempt(safe, room.ledger(), task(room, mode, intent, times, waitMs)))
        await oneEffect(room, intent)
      },
    ),
  ),
  test(
    1,
    `60 concurrent attempts in ${mode} mode over four clients take effect once`,
    needs,
    async (room) => {
      const intent = freshIntent()
      const clients = await Promise.all([1, 2, 3, 4].map(async () => room.safe({}, await room.another())))
      const asked = task(room, mode, intent, 15)
      const ends = await Promise.all(clients.map((safe) => attempt(safe, room.ledger(), asked)))
      await conclude(room, mode, intent, ends.flat())
      await oneEffect(room, intent)
    },
  ),
  ...[20, 500].map((times) =>
    test(
      1,
      `${times} concurrent attempts in ${mode} mode among four processes take effect once`,
      [...needs, 'processes'],
      (room) => amongProcesses(room, mode, times, 0),
    ),
  ),
  test(
    6,
    `100 attempts in ${mode} mode among four processes that wait all get the one outcome`,
    [...needs, 'processes'],
    (room) => amongProcesses(room, mode, 100, waitMs),
  ),
  test(
    1,
    `200 intents in ${mode} mode, each sent three times at once over two clients, take effect once each`,
    needs,
    (room) => manyIntents(room, mode),
  ),
  test(
    14,
    `one key under two scopes and two operations in ${mode} mode is four intents`,
    needs,
    async (room) => {
      const { key, input } = freshIntent()
      const safe = room.safe()
      const intents: readonly Intent[] = [
        { scope: 'a', key, input },
        { scope: 'b', key, input },
        { scope: 'a', key, input, operation: 'pay' },
        { scope: 'a', key, input, operation: 'refund' },
      ]
      const ends = await Promise.all(
        intents.map((intent) => attempt(safe, room.ledger(), task(room, mode, intent, 1))),
      )
      for (const end of ends.flat()) holds('each is a first answer', end.kind === 'answer' && !end.replayed)
      equal('effects', (await room.ledger().read(key)).length, intents.length)
    },
  ),
])

export function freshIntent(): Intent & { readonly input: unknown } {
  return { scope: 'suite', key: `intent-${randomUUID()}`, input: { totalCents: 4000 } }
}

function task<Tx extends object>(
  { mayConflict }: Room<Tx>,
  mode: Mode,
  intent: Intent,
  times: number,
  wait = 0,
): Attempts {
  return { mode, intent, times, waitMs: wait, mayConflict }
}

/**
 * Judges attempts that ran at once. Where rivals beat each other, all of them may have been told to come back: then one that comes back must
 * get through.
 */
async function conclude<Tx extends object>(
  room: Room<Tx>,
  mode: Mode,
  intent: Intent,
  ends: readonly End[],
): Promise<void> {
  const answered = ends.some(({ kind }) => kind === 'answer')
  if (answered || !room.mayConflict) return judge(ends)
  judge([...ends, ...(await attempt(room.safe(), room.ledger(), task(room, mode, intent, 1)))])
}

/** Exactly one first answer; every other is its replay, or was told that the first still runs. */
export function judge(ends: readonly End[]): void {
  const answers = ends.filter((end) => end.kind === 'answer')
  const firsts = answers.filter((end) => !end.replayed)
  equal('first answers', firsts.length, 1)
  for (const { value } of answers) equal('the answer', value, firsts[0]?.value)
  const refused = ends.filter((end) => end.kind === 'refused').map(({ code }) => code)
  equal(
    'codes of the refused',
    [...new Set(refused)].filter((code) => code !== 'IN_PROGRESS'),
    [],
  )
}

function everyAnswer(ends: readonly End[]): void {
  judge(ends)
  equal('refused', ends.filter((end) => end.kind === 'refused').length, 0)
}

/** One effect, with the payload that was accepted. */
export async function oneEffect<Tx extends object>(room: Room<Tx>, intent: Intent): Promise<void> {
  const effects = await room.ledger().read(intent.key)
  equal('effects', effects.length, 1)
  equal('its payload', present('the effect', effects[0]).payload, JSON.stringify(intent.input))
}

async function amongProcesses<Tx extends object>(
  room: Room<Tx>,
  mode: Mode,
  times: number,
  wait: number,
): Promise<void> {
  const intent = freshIntent()
  const { all } = await room.processes(4)
  const ends = (await all('attempt', () => task(room, mode, intent, times / 4, wait))).flat()
  equal('ends', ends.length, times)
  if (wait > 0) everyAnswer(ends)
  else await conclude(room, mode, intent, ends)
  await oneEffect(room, intent)
}

async function manyIntents<Tx extends object>(room: Room<Tx>, mode: Mode): Promise<void> {
  const clients = [room.safe(), room.safe({}, await room.another())]
  const intents = Array.from({ length: 200 }, freshIntent)
  const ends = await Promise.all(
    intents.map(async (intent) => {
      const [some, others] = await Promise.all(
        clients.map((safe, index) => attempt(safe, room.ledger(), task(room, mode, intent, 1 + index))),
      )
      return [...(some ?? []), ...(others ?? [])]
    }),
  )
  for (const [index, intent] of intents.entries()) {
    await conclude(room, mode, intent, ends[index] ?? [])
    await oneEffect(room, intent)
  }
}
