/**
 * `transaction` mode: claim, work and outcome in one database transaction.
 *
 * There is no lease and nothing to clean up: when the process or the connection dies, the database rolls all of it back. The one hard
 * moment is a COMMIT whose answer is lost; then the record is read back (rule 10), and what it says is the answer.
 */
import type { Answer, Call, Ended, ResolvedIntent, TransactionAttempt } from './attempt.js'
import { sleep } from './clock.js'
import {
  abandon,
  askOf,
  type Engine,
  encode,
  finished,
  firstAnswer,
  looksFirst,
  pauseMs,
  refusal,
  replay,
  shared,
  storedOf,
  storeFailure,
  tell,
  watchClock,
} from './engine.js'
import { fail } from './errors.js'
import { armed, hit } from './failpoints.js'
import { keepsFailures } from './options.js'
import { attemptAfter, type Decision, decide, settle } from './protocol.js'
import type { Lead, Stored } from './sharing.js'
import type { OpenTransaction, SaveAnswer, SeenRecord, Transactions } from './store.js'
import { attemptFor, type Control, createControl, type End, endWithin, judge } from './work.js'

/** How long a commit whose answer was lost is asked after before the caller is told to come back, in ms. */
const readBackMs = 5000

export type TransactionWork<Tx, Value> = (attempt: TransactionAttempt<Tx>) => Value | Promise<Value>

/** Everything one claim carries along. */
interface Claim<Tx, Value> {
  readonly engine: Engine<Tx>
  readonly transactions: Transactions<Tx>
  readonly call: Call<Value>
  readonly owner: string
  readonly lead: Lead
  readonly open: OpenTransaction<Tx>
  /** Fires when the work must stop: its time is over, or the connection is gone. */
  readonly control: Control
}

/** Runs the work once, or answers with what an earlier attempt stored. */
export function runTransaction<Tx, Value>(
  engine: Engine<Tx>,
  transactions: Transactions<Tx>,
  call: Call<Value>,
  work: TransactionWork<Tx, Value>,
): Promise<Answer<Value>> {
  return shared(engine, call, async (lead) => {
    if (looksFirst(engine, call)) {
      const stored = await standing(engine, call)
      if (stored !== undefined) {
        lead.end({ kind: 'stored', stored })
        return replay(engine, call, stored)
      }
    }
    const owner = engine.random.ownerToken()
    for (let looks = 0; ; looks += 1) {
      const open = await begin(engine, transactions, call, owner, lead)
      const control = createControl()
      const claim: Claim<Tx, Value> = { engine, transactions, call, owner, lead, open, control }
      try {
        if (armed()) await hit('transaction.begun')
        const decision = decide(open.seen, askOf(call, owner, open.granted))
        const answer = await (decision.do === 'run' || decision.do === 'takeOver'
          ? perform(claim, work)
          : answerTo(claim, decision))
        if (answer === 'again') continue
        if (answer !== 'held') return answer
      } catch (error) {
        // Whatever was thrown, also by a callback of the user: no transaction stays open behind it. After a commit this does nothing.
        await open.rollback()
        throw error
      }
      await waitFor(engine, call, open.seen, lead, looks)
    }
  })
}

/** An outcome that stands already, found by a look. A look that fails says nothing: the claim will tell. */
async function standing<Tx>(engine: Engine<Tx>, call: ResolvedIntent): Promise<Stored | undefined> {
  const seen = await engine.store.find(call.identity, engine.clock.now()).catch((error: unknown) => {
    storeFailure(engine, 'find', error)
    return undefined
  })
  const decision = decide(seen, askOf(call, '', false))
  return decision.do === 'replay' ? storedOf(decision.seen) : undefined
}

async function begin<Tx>(
  engine: Engine<Tx>,
  transactions: Transactions<Tx>,
  call: ResolvedIntent,
  owner: string,
  lead: Lead,
): Promise<OpenTransaction<Tx>> {
  try {
    if (armed()) await hit('transaction.begin')
    const open = await transactions.begin({
      identity: call.identity,
      owner,
      fingerprint: call.fingerprint.bytes,
      timeoutMs: call.policy.workTimeoutMs,
      mayUndoWork: keepsFailures(call.policy),
      callerNowMs: engine.clock.now(),
    })
    watchClock(engine, open.seen)
    return open
  } catch (error) {
    const failure = transactions.isConflict(error)
      ? fail('TRANSACTION_CONFLICT', { cause: error })
      : storeFailure(engine, 'claim', error)
    lead.end({ kind: 'refused', error: failure })
    throw failure
  }
}

async function answerTo<Tx, Value>(
  { engine, call, lead, open }: Claim<Tx, Value>,
  decision: Exclude<Decision, { do: 'run' | 'takeOver' }>,
): Promise<Answer<Value> | 'held' | 'again'> {
  switch (decision.do) {
    case 'replay': {
      // Nothing goes on behind the answer: a function that is frozen then would leave the transaction open.
      await open.rollback()
      const stored = storedOf(decision.seen)
      lead.end({ kind: 'stored', stored })
      return replay(engine, call, stored)
    }
    case 'abandon': {
      await open.rollback()
      if (armed()) await hit('transaction.abandon')
      const gone = await abandon(engine, call, decision.seen)
      if (armed()) await hit('transaction.abandoned')
      if (!gone) return 'again'
      const error = refusal(engine, call, 'unknown', decision.seen)
      lead.end({ kind: 'refused', error })
      throw error
    }
    case 'own':
      // A running row of ours can only be a lease under the same token, and tokens are drawn per call: treat it as anybody's.
      await open.rollback()
      return 'held'
    case 'refuse': {
      await open.rollback()
      if (decision.because === 'held') return 'held'
      const error = refusal(engine, call, decision.because, decision.seen)
      lead.end({ kind: 'refused', error })
      throw error
    }
    default:
      return decision satisfies never
  }
}

/** Waits outside the pool for another owner, or refuses when the time is over. */
async function waitFor<Tx>(
  engine: Engine<Tx>,
  call: ResolvedIntent,
  seen: SeenRecord | undefined,
  lead: Lead,
  looks: number,
): Promise<void> {
  const leftMs = lead.until - engine.clock.monotonic()
  if (leftMs <= 0) {
    const error = refusal(engine, call, 'held', seen)
    lead.end({ kind: 'refused', error })
    throw error
  }
  lead.waiting(seen?.live ? seen.fingerprint : undefined, seen?.leftMs)
  await sleep(engine.clock, Math.min(leftMs, pauseMs(engine, looks)))
}

async function perform<Tx, Value>(
  claim: Claim<Tx, Value>,
  work: TransactionWork<Tx, Value>,
): Promise<Answer<Value>> {
  const { engine, call, lead, open, control } = claim
  const granted = { generation: open.generation, attempts: attemptAfter(open.seen) }
  // Taken before the handler can change its input (rule 15).
  call.fingerprint.bytes()
  lead.working()
  tell(engine, 'claimed', call, granted)
  if (open.seen?.state === 'running') tell(engine, 'takenOver', call, granted)

  open.onLost((cause) => {
    engine.events.emit('storeError', { during: 'work', error: cause })
    control.abort(fail('STORE_UNAVAILABLE', { cause, detail: 'the work was rolled back' }))
  })
  const { attempt, noReturn } = attemptFor(call, granted, control, { tx: open.tx }, open.pin)
  if (armed()) await hit('transaction.work')
  const end = await endWithin(engine.clock, call.policy.workTimeoutMs, () => work(attempt))
  if (end === undefined) {
    control.abort(fail('WORK_TIMEOUT'))
    await open.rollback('abandon')
    tell(engine, 'released', call, granted)
    throw fail('WORK_TIMEOUT', { detail: 'it was rolled back' })
  }
  await open.settle()
  if (armed()) await hit('transaction.worked')
  const ended = judge(call, end, noReturn())
  const settlement = settle({ threw: 'error' in end, kept: ended.kept, failure: ended.failure })
  if (settlement === 'forget') return forget(claim, end)
  return save(claim, end, ended, settlement === 'saveAlone')
}

/** Nothing is kept: the work's writes are rolled back and the key is free. */
async function forget<Tx, Value>(claim: Claim<Tx, Value>, end: End<Value>): Promise<Answer<Value>> {
  const { engine, call, open } = claim
  if (armed()) await hit('transaction.forget')
  await open.rollback()
  if (armed()) await hit('transaction.forgotten')
  tell(engine, 'released', call, { generation: open.generation })
  if ('value' in end) return { value: end.value, replayed: false }
  throw ofWork(claim, end.error)
}

/** An error of the work as the caller gets it: its own, unless the connection died or the database chose it as a victim (rule 21). */
function ofWork<Tx, Value>(claim: Claim<Tx, Value>, error: unknown): unknown {
  if (claim.control.aborted()) return claim.control.signal.reason
  return claim.transactions.isConflict(error) ? fail('TRANSACTION_CONFLICT', { cause: error }) : error
}

async function save<Tx, Value>(
  claim: Claim<Tx, Value>,
  end: End<Value>,
  ended: Ended,
  undoWork: boolean,
): Promise<Answer<Value>> {
  const { call, open } = claim
  const outcome = encode(call, ended.outcome)
  const wish = { fingerprint: call.fingerprint.bytes(), outcome, retainMs: call.policy.retainMs }
  if (armed()) await hit('transaction.save')
  let answer = await open.save({ ...wish, undoWork })
  // A refusal answered after a swallowed constraint error has no writes left to lose: it is saved alone. A success has.
  if (answer.kind === 'aborted' && !undoWork && isRefusal(ended))
    answer = await open.save({ ...wish, undoWork: true })
  if (armed()) await hit('transaction.saved')
  if (answer.kind !== 'committed') await open.rollback()
  return afterSave(claim, end, ended, outcome, answer)
}

function isRefusal({ outcome }: Ended): boolean {
  return outcome.kind === 'reply' && outcome.reply.status >= 400
}

function afterSave<Tx, Value>(
  claim: Claim<Tx, Value>,
  end: End<Value>,
  ended: Ended,
  outcome: Uint8Array,
  answer: SaveAnswer,
): Answer<Value> | Promise<Answer<Value>> {
  const { engine, call, lead, open } = claim
  switch (answer.kind) {
    case 'committed': {
      const { generation } = open
      tell(engine, 'completed', call, { generation })
      // What the work wrote elsewhere is not covered (rule 24). A refusal has nothing to write.
      if (!open.used() && 'value' in end && !isRefusal(ended)) tell(engine, 'txUnused', call, { generation })
      finished(engine, call, lead, { outcome, fingerprint: call.fingerprint.bytes(), generation })
      return firstAnswer(call, outcome, end)
    }
    case 'refused':
      return adopt(claim)
    case 'rolledBack':
      tell(engine, 'released', call, { generation: open.generation })
      throw ofWork(claim, answer.error)
    case 'aborted':
      tell(engine, 'released', call, { generation: open.generation })
      throw fail('TRANSACTION_ABORTED', { cause: answer.error })
    case 'ambiguous':
      engine.events.emit('storeError', { during: 'commit', error: answer.error })
      return readBack(claim, end, outcome)
    default:
      return answer satisfies never
  }
}

/** A rival's record stands where ours should have been written: what it says is the answer. */
async function adopt<Tx, Value>(claim: Claim<Tx, Value>): Promise<Answer<Value>> {
  const { engine, call, owner, lead } = claim
  if (armed()) await hit('transaction.adopt')
  let seen: SeenRecord | undefined
  try {
    seen = await engine.store.find(call.identity, engine.clock.now())
  } catch (error) {
    throw storeFailure(engine, 'find', error)
  }
  const decision = decide(seen, askOf(call, owner, false))
  if (decision.do === 'replay') {
    const stored = storedOf(decision.seen)
    lead.end({ kind: 'stored', stored })
    return replay(engine, call, stored)
  }
  throw refusal(engine, call, decision.do === 'refuse' ? decision.because : 'held', seen)
}

/** Finds out what became of a commit whose answer was lost (rule 10). */
async function readBack<Tx, Value>(
  claim: Claim<Tx, Value>,
  end: End<Value>,
  outcome: Uint8Array,
): Promise<Answer<Value>> {
  const { engine, transactions, call, owner, lead } = claim
  const until = engine.clock.monotonic() + readBackMs
  for (let looks = 0; ; looks += 1) {
    if (armed()) await hit('transaction.readBack')
    const found = await transactions.readBack(call.identity, engine.clock.now()).catch((error: unknown) => {
      engine.events.emit('storeError', { during: 'readBack', error })
      return undefined
    })
    const seen = found?.seen
    if (seen?.state === 'done' && seen.owner === owner) {
      // Our own, however short its retention: what was committed was not rolled back.
      finished(engine, call, lead, storedOf(seen))
      tell(engine, 'completed', call, seen)
      return firstAnswer(call, outcome, end)
    }
    if (seen?.state === 'done' && seen.live) {
      if (!call.fingerprint.matches(seen.fingerprint)) throw refusal(engine, call, 'mismatched', seen)
      const stored = storedOf(seen)
      lead.end({ kind: 'stored', stored })
      return replay(engine, call, stored)
    }
    if (found?.undecided === false) throw fail('STORE_UNAVAILABLE', { detail: 'the work was rolled back' })
    if (engine.clock.monotonic() >= until)
      throw fail('STORE_UNAVAILABLE', { detail: 'the commit is not known yet' })
    await sleep(engine.clock, pauseMs(engine, looks))
  }
}
