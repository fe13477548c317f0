/**
 * Takes a connection out of postgres.js' pool and gives it back, as `sql.begin` does.
 *
 * Not `sql.reserve()`: on a fresh connection it hangs where `fetch_types` is false, a reservation that failed to connect keeps the next
 * connection for nobody, and `sql.end()` waits for ever for what was reserved meanwhile (seen with 3.4.9). The pool takes ours back by itself with the
 * answer that ends the transaction, so that `max_lifetime` and `sql.end()` are honoured there.
 */
import type { Maker, Query, Reservation, Wire } from './types.js'

/** A connection taken. After it was given back, or is lost, nothing is sent on it: it may be somebody else's. */
export interface Hold {
  readonly wire: Wire
  /** Names the server's process behind it: what was prepared there is known to no other. */
  readonly process: string
  isHeld(): boolean
  /** Why the connection is gone. */
  lost(): unknown
  onLost(listener: (cause: unknown) => void): void
  /** After a silence: asks whether the server is still there, so that its end is known before anything is sent that ends in doubt. */
  probe(): Promise<void>
  /** Told of every failure: a socket that was reset fails its queries a moment before it closes, and takes no more. */
  hear(error: unknown): void
  /** Sends in order; what cannot be sent is rejected. */
  submit(query: Query): void
  /** Whether the pool takes the connection back when the transaction has ended. */
  lastFlight(yes: boolean): void
  giveBack(): void
  destroy(): void
}

/** The pool moves a connection between its queues; while it is held, it is in none. */
const limbo = { remove: () => undefined, push: () => undefined }
/**
 * How long nothing was sent, in ms, before it is worth a round trip to ask. postgres.js drops what an idle connection is told, so a server
 * that has ended a silent owner's transaction is not heard.
 */
const silenceMs = 50
/** A pipeline that is full takes the query but does not hand over the connection; the next one is less full. */
const knocks = 20

/**
 * Takes a connection and sends `first` on it in the same packet. The query that asks for the connection is an empty one: where the pool does not hand
 * the connection over, nothing has happened on it.
 */
export async function takeHold(sql: Maker, first: (hold: Hold) => void): Promise<Hold> {
  for (let knock = 0; knock < knocks; knock += 1) {
    let taken: Hold | undefined
    const query = sql.unsafe('', [], { onexecute })
    await query
    function onexecute(wire: Wire): void {
      taken = hold(sql, wire, `${query.state?.pid}.${query.state?.secret}`)
      first(taken)
    }
    if (taken !== undefined) return taken
  }
  throw new Error('postgres.js hands over no connection: version 3.4 is needed')
}

function hold(sql: Maker, wire: Wire, process: string): Hold {
  const listeners: ((cause: unknown) => void)[] = []
  const waiting: Query[] = []
  let sent: Query[] = []
  let blocked = false
  let cause: unknown
  let readyAt = performance.now()
  const reservation: Reservation = Object.assign(ready, { release: true })
  wire.queue.remove(wire)
  wire.queue = limbo
  wire.reserved = reservation
  wire.onclose = lose
  return {
    wire,
    process,
    isHeld,
    lost: () => cause,
    onLost: (listener) => {
      if (cause === undefined) listeners.push(listener)
      else listener(cause)
    },
    probe,
    hear,
    submit,
    lastFlight: (yes) => {
      reservation.release = !yes
    },
    giveBack,
    destroy,
  }

  function isHeld(): boolean {
    return wire.reserved === reservation && cause === undefined
  }

  function submit(query: Query): void {
    if (!isHeld()) query.reject(cause ?? new Error('the connection was given back'))
    else if (blocked) waiting.push(query)
    else send(query)
  }

  function send(query: Query): void {
    let written = false
    query.options = withMark(query.options, () => {
      written = true
      return true
    })
    const behind = sent.length > 0
    sent.push(query)
    const more = wire.execute(query)
    blocked = !more
    // A query that cannot be built (an undefined value) behind one that runs makes postgres.js take every later answer for the wrong query's.
    if (more && !written && behind) destroy()
  }

  function ready(): void {
    sent = []
    readyAt = performance.now()
    blocked = false
    while (!blocked) {
      const next = waiting.shift()
      if (next === undefined) return
      if (!next.cancelled) send(next)
    }
  }

  function lose(error: unknown): void {
    if (cause !== undefined) return
    cause = error ?? new Error('the connection was closed')
    for (const query of waiting.splice(0)) query.reject(cause)
    for (const listener of listeners.splice(0)) listener(cause)
  }

  async function probe(): Promise<void> {
    if (!isHeld() || sent.length > 0 || performance.now() - readyAt < silenceMs) return
    await empty().then(undefined, hear)
  }

  /** Node and postgres.js number the errors of connections. */
  function hear(error: unknown): void {
    if (isHeld() && typeof error === 'object' && error !== null && 'errno' in error) lose(error)
  }

  function empty(): Query {
    const query = sql.unsafe('')
    query.handler = submit
    return query
  }

  /** Where no transaction ends, with the answer to a query of no statement. */
  function giveBack(): void {
    if (!isHeld()) return
    reservation.release = false
    // Still ours then: a transaction is open after all, and with this connection it is rolled back.
    empty().then(destroy, () => undefined)
  }

  function destroy(): void {
    if (!isHeld()) return
    listeners.length = 0
    for (const query of sent) if (query.active) cancel(query)
    reservation.release = true
    // In the next turn: what postgres.js has collected in this one must be written first, or the place in its pool never connects again.
    setImmediate(() => {
      if (wire.reserved === reservation) wire.terminate()
    })
    lose(new Error('the connection was given up'))
  }
}

/** So that the server, and with it the socket, does not wait for a statement nobody waits for. */
function cancel(query: Query): void {
  const send = query.canceller
  query.canceller = null
  Promise.resolve(send?.(query)).catch(() => undefined)
}

function withMark(options: Query['options'], mark: () => boolean): Query['options'] {
  return Object.defineProperty(options, 'onexecute', { value: mark, configurable: true, enumerable: true })
}
