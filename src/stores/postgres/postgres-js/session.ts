/** Sessions on a connection that was taken for a transaction, and on the caller's own transaction. */
import { fail } from '../../../errors.js'
import type { Call, Flown, Result, Session } from '../driver.js'
import { type BookOf, flightQuery } from './flight.js'
import { guardTx } from './guard.js'
import { type Hold, takeHold } from './hold.js'
import type { Maker, Query, Wire } from './types.js'

export interface Client {
  readonly maker: Maker
  /** What closes a cursor. */
  readonly close: object
}

type Listener = (cause: unknown) => void

/** The connection is taken with the first flight that opens a transaction, and goes back with the one that ends it. */
export function ownSession<Tx>({ maker, close }: Client, bookOf: BookOf | undefined): Session<Tx> {
  let hold: Hold | undefined
  let given = false
  const make = (text: string) => maker.unsafe(text)
  return {
    flight,
    guard: () => guardTx<Tx>(maker, { ...taken(), deliver: () => taken().submit, close }),
    lost: () => hold?.lost(),
    onLost: (listener: Listener) => taken().onLost(listener),
    release: () => end('giveBack'),
    destroy: () => end('destroy'),
  }

  function taken(): Hold {
    if (hold === undefined) throw new Error('no transaction was begun in this session')
    return hold
  }

  async function flight(calls: readonly Call[]): Promise<Flown> {
    if (hold !== undefined) return fly(hold, calls)
    if (!calls.some(({ statement }) => /^begin\b/.test(statement.text))) return alone(calls)
    let landed: Promise<Flown> | undefined
    try {
      hold = await takeHold(maker, (fresh) => {
        hold = fresh
        // Given up before the pool had a connection: it takes it back with the answer to the empty query.
        if (given) fresh.lastFlight(true)
        else landed = fly(fresh, calls)
      })
      return (await landed) ?? { failure: { index: 0, error: new Error('the session was given up') } }
    } catch (error) {
      return { failure: { index: 0, error } }
    }
  }

  /** No transaction is opened: the pool's connections may serve it like any other statement. */
  function alone(calls: readonly Call[]): Promise<Flown> {
    const { query, landed } = flightQuery(make, calls)
    query.then(undefined, () => undefined)
    return landed
  }

  async function fly(held: Hold, calls: readonly Call[]): Promise<Flown> {
    const cause = held.lost()
    if (cause !== undefined) return { failure: { index: 0, error: cause } }
    // Taken back with the end of the transaction: there is nothing left to roll back.
    if (!held.isHeld() && calls.every(isRollback)) return { results: calls.map(rolledBack) }
    held.lastFlight(endsOpen(calls) === false)
    const { query, landed } = flightQuery(make, calls, bookOf?.(held))
    query.handler = held.submit
    held.submit(query)
    const flown = await landed
    if (flown.failure !== undefined) held.hear(flown.failure.error)
    return flown
  }

  function end(how: 'giveBack' | 'destroy'): void {
    if (given) return
    given = true
    hold?.[how]()
  }
}

function isRollback({ statement }: Call): boolean {
  return statement.text === 'rollback'
}

function rolledBack(): Result {
  return { rows: [], tag: 'ROLLBACK' }
}

/** Whether a transaction is open after the calls, by the last of them that says so. */
function endsOpen(calls: readonly Call[]): boolean | undefined {
  const last = calls.findLast(({ statement }) => /^(?:begin|commit|rollback$)/.test(statement.text))
  return last === undefined ? undefined : last.statement.text.startsWith('begin')
}

/** The session behind the caller's own transaction (`sql.begin`), which stays the caller's to end. */
export function adopted<Tx>({ close }: Client, tx: Tx): Session<Tx> {
  const maker = makerOf(tx)
  let wire: Wire | undefined
  let before: Wire['onclose'] = null
  let cause: unknown
  let released = false
  const listeners: Listener[] = []
  return {
    flight,
    guard: () => guardTx<Tx>(maker, { deliver, hear: () => undefined, probe: async () => undefined, close }),
    lost: () => cause,
    onLost: (listener) => {
      if (cause === undefined) listeners.push(listener)
      else listener(cause)
    },
    release,
    destroy: release,
  }

  async function flight(calls: readonly Call[]): Promise<Flown> {
    if (cause !== undefined) return { failure: { index: 0, error: cause } }
    const { query, landed } = flightQuery((text) => maker.unsafe(text, [], { onexecute: watch }), calls)
    deliver(query)(query)
    return landed
  }

  /** Hands over without the `catch` by which postgres.js fails the whole transaction for a statement whose error was dealt with. */
  function deliver(query: Query): (query: Query) => unknown {
    const handler = query.handler
    return (sent) => {
      sent.catch = () => sent
      return cause === undefined ? handler(sent) : sent.reject(cause)
    }
  }

  function watch(found: Wire): true {
    if (wire === undefined && !released) {
      wire = found
      before = found.onclose
      found.onclose = lose
    }
    return true
  }

  function lose(error: unknown): void {
    cause = error
    for (const listener of listeners.splice(0)) listener(error)
    before?.(error)
  }

  function release(): void {
    released = true
    listeners.length = 0
    if (wire?.onclose === lose) wire.onclose = before
  }
}

function makerOf(tx: unknown): Maker {
  const usable = typeof tx === 'function' && 'unsafe' in tx && !('begin' in tx)
  if (usable) return tx as unknown as Maker
  throw fail('OPTION_INVALID', { detail: 'tx is not the sql of an open transaction of postgres.js' })
}
