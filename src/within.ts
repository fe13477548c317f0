/**
 * `within`: one intent inside the caller's own open transaction, behind a savepoint.
 *
 * The caller's COMMIT, which is not seen here, makes it true; so nothing is emitted, cached or told to followers, no setting of
 * the transaction is changed, and a refusal leaves it usable (rule 7). It never waits: a connection would be held meanwhile (rule 6).
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Answer, Call } from './attempt.js'
import { askOf, type Engine, encode, firstAnswer, refusalError, replayable, storedOf } from './engine.js'
import { fail } from './errors.js'
import { armed, hit } from './failpoints.js'
import { keepsFailures } from './options.js'
import { attemptAfter, decide, settle } from './protocol.js'
import type { OpenTransaction, Transactions } from './store.js'
import type { TransactionWork } from './transaction.js'
import { attemptFor, createControl, endOf, judge } from './work.js'

export type Within<Tx> = <Value>(
  tx: Tx,
  call: Call<Value>,
  work: TransactionWork<Tx, Value>,
) => Promise<Answer<Value>>

export function createWithin<Tx extends object>(
  engine: Engine<Tx>,
  transactions: Transactions<Tx>,
): Within<Tx> {
  /** The last intent under way in each transaction: savepoints nest, so two at a time would tear each other down. */
  const tails = new WeakMap<Tx, Promise<unknown>>()
  const inside = new AsyncLocalStorage<ReadonlySet<Tx>>()

  return async function within(tx, call, work) {
    if ((typeof tx !== 'object' && typeof tx !== 'function') || tx === null) {
      throw fail('OPTION_INVALID', { detail: 'tx must be the open transaction of the caller' })
    }
    const around = inside.getStore() ?? new Set()
    if (around.has(tx)) {
      throw fail('OPTION_INVALID', {
        detail: 'within is already running an intent in this transaction; it cannot be nested',
      })
    }
    const before = tails.get(tx) ?? Promise.resolve()
    const run = before.then(() =>
      inside.run(new Set(around).add(tx), () => runWithin(engine, transactions, tx, call, work)),
    )
    tails.set(
      tx,
      run.catch(() => undefined),
    )
    return run
  }
}

async function runWithin<Tx, Value>(
  engine: Engine<Tx>,
  transactions: Transactions<Tx>,
  tx: Tx,
  call: Call<Value>,
  work: TransactionWork<Tx, Value>,
): Promise<Answer<Value>> {
  const owner = engine.random.ownerToken()
  if (armed()) await hit('within.claim')
  const open = await transactions.within(tx, {
    identity: call.identity,
    owner,
    fingerprint: call.fingerprint.bytes,
    timeoutMs: call.policy.workTimeoutMs,
    mayUndoWork: keepsFailures(call.policy),
    callerNowMs: engine.clock.now(),
  })
  let saved = false
  try {
    if (armed()) await hit('within.claimed')
    const decision = decide(open.seen, askOf(call, owner, open.granted))
    switch (decision.do) {
      case 'run':
      case 'takeOver': {
        const { stored, ...answer } = await perform(engine, call, open, work)
        saved = stored
        return answer
      }
      case 'replay':
        return { value: call.format.toValue(await replayable(call, storedOf(decision.seen))), replayed: true }
      case 'abandon':
        throw refusalError('unknown', decision.seen)
      case 'own':
        throw refusalError('held', decision.seen)
      case 'refuse':
        throw refusalError(decision.because, decision.seen)
      default:
        return decision satisfies never
    }
  } finally {
    if (!saved) await open.rollback()
  }
}

async function perform<Tx, Value>(
  { clock }: Engine<Tx>,
  call: Call<Value>,
  open: OpenTransaction<Tx>,
  work: TransactionWork<Tx, Value>,
): Promise<Answer<Value> & { stored: boolean }> {
  const fingerprint = call.fingerprint.bytes()
  const control = createControl()
  const { workTimeoutMs, retainMs } = call.policy
  const cancel = clock.schedule(workTimeoutMs, () => control.abort(fail('WORK_TIMEOUT')), 'background')
  const granted = { generation: open.generation, attempts: attemptAfter(open.seen) }
  const { attempt, noReturn } = attemptFor(call, granted, control, { tx: open.tx })
  if (armed()) await hit('within.work')
  const end = await endOf(() => work(attempt))
  cancel()
  await open.settle()
  const ended = judge(call, end, noReturn())
  const settlement = settle({ threw: 'error' in end, kept: ended.kept, failure: ended.failure })
  if (settlement === 'forget') {
    if ('error' in end) throw end.error
    return { value: end.value, replayed: false, stored: false }
  }
  const outcome = encode(call, ended.outcome)
  if (armed()) await hit('within.save')
  const answer = await open.save({ fingerprint, outcome, retainMs, undoWork: settlement === 'saveAlone' })
  if (armed()) await hit('within.saved')
  switch (answer.kind) {
    case 'committed':
      return { ...firstAnswer(call, outcome, end), stored: true }
    case 'refused':
      throw refusalError('held', undefined)
    case 'aborted':
      throw fail('TRANSACTION_ABORTED', { cause: answer.error })
    case 'rolledBack':
    case 'ambiguous':
      throw answer.error
    default:
      return answer satisfies never
  }
}
