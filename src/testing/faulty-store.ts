/**
 * A store with faults: everything goes through to the real one, past the plan.
 */
import type { OpenTransaction, SaveAnswer, Store, Transactions } from '../store.js'
import { connectionLost, type FaultPlan, type FaultPoint } from './faults.js'

/**
 * Wraps a store. What its plan says fails, everything else passes unchanged; abilities that the store lacks stay lacking.
 *
 * @example
 * ```ts
 * const faults = planFaults()
 * const safe = retrysafe({ store: withFaults(memory(), faults), mode: 'lease' })
 * faults.next('complete', 'loseAnswer')
 * ```
 */
export function withFaults<Tx>(store: Store<Tx>, faults: FaultPlan): Store<Tx> {
  const { transactions, sweeping } = store

  async function past<Answer>(point: FaultPoint, call: () => Promise<Answer>): Promise<Answer> {
    const fault = await faults.arrive(point)
    if (fault === 'failBefore') throw connectionLost()
    const answer = await call()
    if (fault === 'loseAnswer') throw connectionLost()
    return answer
  }

  return {
    ...store,
    claim: (request) => past('claim', () => store.claim(request)),
    takeOver: (request) => past('takeOver', () => store.takeOver(request)),
    abandon: (verdict) => past('abandon', () => store.abandon(verdict)),
    renew: (renewals) => past('renew', () => store.renew(renewals)),
    complete: (completion) => past('complete', () => store.complete(completion)),
    release: (wish) => past('release', () => store.release(wish)),
    find: (identity, callerNowMs) => past('find', () => store.find(identity, callerNowMs)),
    ...(transactions && { transactions: faultyTransactions(transactions, faults, past) }),
    ...(sweeping && { sweeping: { sweep: (request) => past('sweep', () => sweeping.sweep(request)) } }),
  }
}

function faultyTransactions<Tx>(
  transactions: Transactions<Tx>,
  faults: FaultPlan,
  past: <Answer>(point: FaultPoint, call: () => Promise<Answer>) => Promise<Answer>,
): Transactions<Tx> {
  /** A connection that is cut takes its transaction along: whatever was begun on it rolls back. */
  async function opened(
    point: 'begin' | 'within' | 'open',
    call: () => Promise<OpenTransaction<Tx>>,
  ): Promise<OpenTransaction<Tx>> {
    const fault = await faults.arrive(point)
    if (fault === 'failBefore') throw connectionLost()
    const open = await call()
    if (fault === undefined) return { ...open, save: (wish) => save(open, wish) }
    await open.rollback('abandon')
    throw connectionLost()
  }

  /** A save never throws: whether it arrived or not, the caller hears that nobody can tell (rule 10). */
  async function save(open: OpenTransaction<Tx>, wish: Parameters<typeof open.save>[0]): Promise<SaveAnswer> {
    const fault = await faults.arrive('save')
    if (fault === undefined) return open.save(wish)
    if (fault === 'loseAnswer') await open.save(wish)
    else await open.rollback('abandon')
    return { kind: 'ambiguous', error: connectionLost() }
  }

  return {
    ...transactions,
    begin: (request) => opened('begin', () => transactions.begin(request)),
    within: (tx, request) => opened('within', () => transactions.within(tx, request)),
    open: (owned, timeoutMs) => opened('open', () => transactions.open(owned, timeoutMs)),
    readBack: (identity, callerNowMs) => past('readBack', () => transactions.readBack(identity, callerNowMs)),
    renameOwner: (owned, owner) => past('renameOwner', () => transactions.renameOwner(owned, owner)),
  }
}
