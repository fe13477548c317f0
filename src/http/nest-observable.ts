/**
 * The Observables between Nest and a handler. Nest answers by itself with what they end in, so a handler is watched here, not
 * answered for: for what it throws, and for whether its chain is left before it has ended.
 */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { NestObservable, NestSubscriber, ObservableClass } from './nest-types.js'
import { createPatches } from './patches.js'
import { isReply, type Reply } from './reply.js'

export interface Watched<Observable> {
  readonly observable: Observable
  /** Called when an answer is complete: whether what was thrown would have been seen. */
  isSure(): boolean
}

export interface Watching {
  readonly raw: ServerResponse
  /** Told what the handler throws; true: it is answered for, and the filters are not asked. */
  threw(error: unknown): boolean
  /** Sends a reply that the handler returned. */
  send(reply: Reply): void
  /** Makes what Nest does to the response from here on go nowhere. */
  shield(): void
  isClientGone(): boolean
}

/**
 * Watches a handler's Observable. Who leaves it (Nest when the client has hung up, a time-out around us) does not stop the handler: its work
 * is to come to its end, until there is an answer.
 */
export function watch<Observable extends NestObservable>(
  source: Observable,
  { raw, threw, send, shield, isClientGone }: Watching,
): Watched<Observable> {
  let left = false
  let over = false
  let stop: () => void = () => undefined
  /** The status the answer would have by now; an error filter gives it another. */
  let status: number | undefined

  function subscribe(subscriber: NestSubscriber): () => void {
    let ended = false
    let isSent = false

    function next(value: unknown): void {
      if (!isReply(value)) {
        subscriber.next(value)
        return
      }
      isSent = true
      try {
        send(value)
      } catch (error) {
        fail(error)
      }
    }

    function fail(error: unknown): void {
      end()
      if (threw(error)) whenOver(raw, () => finish(subscriber, shield))
      else subscriber.error(error)
    }

    function complete(): void {
      if (ended) return
      end()
      if (isSent) whenOver(raw, () => finish(subscriber, shield))
      else subscriber.complete()
    }

    function end(): void {
      ended = true
      status = raw.statusCode
      if (left && isClientGone()) tellGone(raw)
    }

    const subscription = source.subscribe({ next, error: fail, complete })
    stop = () => subscription.unsubscribe()
    return () => {
      if (over) stop()
      else if (!ended) left = true
    }
  }

  function isSure(): boolean {
    over = true
    if (left) stop()
    return !left && (status === undefined || raw.statusCode === status)
  }

  return { observable: new (classOf(source))(subscribe), isSure }
}

/**
 * For answers that were given without the handler: ends the chain around us, behind the answer. Interceptors there see undefined, and what
 * they and Nest make of it goes nowhere.
 */
export function behindAnswer<Observable extends NestObservable>(
  source: Observable,
  { raw, shield }: Pick<Watching, 'raw' | 'shield'>,
): Observable {
  return new (classOf(source))((subscriber) => {
    whenOver(raw, () => finish(subscriber, shield))
    return () => undefined
  })
}

function finish(subscriber: NestSubscriber, shield: () => void): void {
  shield()
  subscriber.next(undefined)
  subscriber.complete()
}

function classOf<Observable>(source: Observable): ObservableClass<Observable> {
  return (source as { constructor: unknown }).constructor as ObservableClass<Observable>
}

/** Not before: whoever compresses or adds a cookie is still at work on the response. */
function whenOver(raw: ServerResponse, go: () => void): void {
  if (raw.destroyed || raw.writableFinished) go()
  else raw.once('close', go)
}

/** Nest answers nobody who has left. That nothing will come shows as it does with a file: by a source that closes with the connection. */
function tellGone(raw: ServerResponse): void {
  const nothing = new Readable({ read: () => undefined })
  nothing.pipe(raw)
  nothing.destroy()
}

/** Of a response that is over, nobody is told that it is. */
export function ignoreWrites(raw: ServerResponse): void {
  const { replace } = createPatches(raw)
  for (const name of ['setHeader', 'appendHeader', 'removeHeader', 'writeHead', 'end'])
    replace(name, () => raw)
  for (const name of ['write', 'flushHeaders']) replace(name, () => true)
}
