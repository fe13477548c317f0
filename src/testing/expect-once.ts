/**
 * The concurrent test as one assertion: many attempts of one intent at once, one effect, one first answer, and nothing else but its replays.
 */
import type { Retrysafe } from '../retrysafe.js'
import { type Effects, type Ending, endingOf } from './endings.js'
import { show } from './show.js'

/** What {@link expectOnce} is given: an attempt, and a count of its effects. */
export interface ExpectOnce {
  /**
   * Sends one attempt of the intent, every time with the same key. It answers with a `Response` (or anything with `status` and
   * `headers`), with `{ value, replayed }` as `safe.transaction` and `safe.run` do, or throws as they do. `index` counts from 0.
   */
  attempt(index: number): Promise<unknown> | unknown
  /** How many effects there are. It must count them without a unique constraint, which would hide the duplicate. */
  effects: Effects
  /** How many attempts start at once. Default 5. */
  readonly times?: number
  /** Whether one more attempt afterwards must be a replay. Default false. */
  readonly sequential?: boolean
  /**
   * The instance behind the route. With it, work in transaction mode that was kept and never used `tx` is a failure too: its writes went past
   * the transaction, which no count of effects can show (rule 24).
   */
  readonly safe?: Pick<Retrysafe<never>, 'on'>
}

/** What happened, for a test that wants to know more. */
export interface Once {
  /** How many of the attempts were replays, and how many were told to come back. */
  readonly replays: number
  readonly inProgress: number
  /** Bytes of the first answer. */
  readonly answer: Uint8Array
}

/**
 * Runs `attempt` several times at once and rejects, saying what it found, unless exactly one effect was added, exactly one attempt got a
 * first answer, every other one a replay equal to it (status, bytes, and the headers that a record keeps by default) or a refusal that says
 * when to come back (409 or 503 with `Retry-After`).
 * A first answer is a definite one without `Idempotent-Replayed`: 2xx, a redirect, or a 4xx that is kept; no problem of this library's own.
 *
 * @example
 * ```ts
 * await expectOnce({
 *   attempt: () => fetch(url, { method: 'POST', headers: { 'idempotency-key': 'k1' }, body }),
 *   effects: async () => Number((await pool.query('select count(*) from orders')).rows[0].count),
 * })
 * ```
 */
export async function expectOnce(test: ExpectOnce): Promise<Once> {
  let uncovered = 0
  const stop = test.safe?.on('txUnused', () => {
    uncovered += 1
  })
  try {
    const once = await run(test)
    if (uncovered > 0)
      throw new Error('The work was kept without having used tx: what it wrote is not covered')
    return once
  } finally {
    stop?.()
  }
}

async function run({ attempt, effects, times = 5, sequential = false }: ExpectOnce): Promise<Once> {
  const before = await effects()
  const endings = await Promise.all(
    Array.from({ length: times }, (_, index) => endingOf(async () => attempt(index))),
  )
  const added = (await effects()) - before
  const first = judge(endings, added)
  const once = {
    replays: endings.filter(({ kind }) => kind === 'replay').length,
    inProgress: endings.filter(({ kind }) => kind === 'inProgress').length,
    answer: first.bytes,
  }
  if (!sequential) return once
  const again = await endingOf(async () => attempt(times))
  if (again.kind !== 'replay') complain('The retry afterwards is no replay', [again])
  const difference = differenceOf(again, first)
  if (difference !== undefined)
    complain(`The retry afterwards differs from the first answer in ${difference}`, [again])
  const more = (await effects()) - before
  if (more !== 1) complain(`The retry afterwards added effects: there are ${more} now`, [again])
  return once
}

/** Judges the endings of attempts that ran at once, and the effects that they added; answers with the first answer. */
function judge(endings: readonly Ending[], effects: number): Ending {
  const firsts = endings.filter((ending) => ending.kind === 'first')
  const replays = endings.filter((ending) => ending.kind === 'replay')
  const [first] = firsts
  if (effects !== 1) complain(`Expected exactly one effect, found ${effects}`, endings)
  if (firsts.length > 1) complain(`Expected exactly one first answer, found ${firsts.length}`, endings)
  if (first === undefined) complain('No attempt got a first answer', endings)
  if (endings.some((ending) => ending.kind === 'other')) {
    complain('Every other attempt must be a replay, or be told when to come back', endings)
  }
  for (const replay of replays) {
    const difference = differenceOf(replay, first)
    if (difference !== undefined) complain(`A replay differs from the first answer in ${difference}`, endings)
  }
  return first
}

/** What makes a replay differ: status and body, or the headers that a record keeps. */
function differenceOf(replay: Ending, first: Ending): string | undefined {
  if (Buffer.compare(replay.bytes, first.bytes) !== 0) return 'its status or its bytes'
  if (replay.head === first.head) return undefined
  return `its headers:\n${first.head || '(none)\n'}became\n${replay.head || '(none)\n'}`
}

function complain(what: string, endings: readonly Ending[]): never {
  const counts = new Map<string, number>()
  for (const { text } of endings) counts.set(text, (counts.get(text) ?? 0) + 1)
  const lines = [...counts].map(([text, count]) => `  ${count} × ${text}`)
  throw new Error(`${what}. The attempts ended as:\n${lines.join('\n')}${effectsHint(endings)}`)
}

function effectsHint(endings: readonly Ending[]): string {
  const strange = endings.find((ending) => ending.kind === 'other')
  return strange === undefined ? '' : `\nThe first that fits nothing: ${show(strange.raw)}`
}
