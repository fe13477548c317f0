/**
 * What the suite's other processes are asked to do, and how it is done; the suite does the same in its own process.
 */
import { randomUUID } from 'node:crypto'
import type { Answer } from '../../attempt.js'
import type { Intent } from '../../intent.js'
import type { Mode } from '../../options.js'
import type { Retrysafe } from '../../retrysafe.js'
import type { ClaimAnswer, ClaimRequest, Granted, Store, TakeOverRequest } from '../../store.js'
import { codeOf } from '../check.js'
import type { EffectLedger } from './harness.js'

export interface Attempts {
  readonly mode: Mode
  readonly intent: Intent
  /** How many attempts start at once. */
  readonly times: number
  /** How long each waits for another owner; 0 refuses at once. */
  readonly waitMs: number
  /** Whether an attempt that met a rival is sent again, as a caller would that is told 503. */
  readonly mayConflict: boolean
}

/** How an attempt ended. */
export type End =
  | { readonly kind: 'answer'; readonly value: unknown; readonly replayed: boolean }
  | { readonly kind: 'refused'; readonly code: string }

export interface Tasks {
  readonly claim: { readonly asked: readonly ClaimRequest[]; readonly answer: readonly ClaimAnswer[] }
  readonly takeOver: {
    readonly asked: readonly TakeOverRequest[]
    readonly answer: readonly (Granted | undefined)[]
  }
  readonly attempt: { readonly asked: Attempts; readonly answer: readonly End[] }
}

/** A task in words: `{ do: 'claim', asked: […] }`. */
export type Task = {
  [Name in keyof Tasks]: { readonly do: Name; readonly asked: Tasks[Name]['asked'] }
}[keyof Tasks]

/** Does a task with everything in it at once. */
export function perform<Tx extends object>(
  store: Store<Tx>,
  ledger: EffectLedger<Tx> | undefined,
  instance: () => Retrysafe<Tx>,
  task: Task,
): Promise<readonly unknown[]> {
  switch (task.do) {
    case 'claim':
      return Promise.all(task.asked.map((request) => store.claim(request)))
    case 'takeOver':
      return Promise.all(task.asked.map((request) => store.takeOver(request)))
    case 'attempt':
      return attempt(instance(), ledger, task.asked)
    default:
      return task satisfies never
  }
}

/** What a caller is told whose transaction met a rival: in the work, or at its claim. */
const beaten = ['TRANSACTION_CONFLICT', 'STORE_UNAVAILABLE']

/** Starts equal attempts at once. Each writes one effect if it gets to run, and answers with a value that no other attempt has. */
export function attempt<Tx extends object>(
  safe: Retrysafe<Tx>,
  ledger: EffectLedger<Tx> | undefined,
  { mode, intent, times, mayConflict }: Attempts,
): Promise<readonly End[]> {
  const { key } = intent
  const payload = JSON.stringify(intent.input ?? null)

  async function write(tx: Tx | undefined, generation: number): Promise<string> {
    await ledger?.write(tx, { key, payload, generation })
    return randomUUID()
  }

  function once(): Promise<Answer<string>> {
    if (mode === 'transaction') return safe.transaction(intent, ({ tx, generation }) => write(tx, generation))
    return safe.run(intent, ({ commit, generation }) => commit((tx) => write(tx, generation)))
  }

  async function end(): Promise<End> {
    for (;;) {
      const ended = await endOf(once())
      if (!mayConflict || ended.kind === 'answer' || !beaten.includes(ended.code)) return ended
    }
  }

  return Promise.all(Array.from({ length: times }, end))
}

export async function endOf(answer: Promise<Answer<unknown>>): Promise<End> {
  try {
    return { kind: 'answer', ...(await answer) }
  } catch (error) {
    return { kind: 'refused', code: codeOf(error) }
  }
}
