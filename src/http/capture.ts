/**
 * What a handler answers, taken at the level of `http.ServerResponse`: everything a framework offers (json, send, sendFile, pipe,
 * redirect, an error page) ends in its `writeHead`, `write` and `end`. This is the only file that patches a response.
 *
 * Two ways to hold back (rule 8). `all`: nothing leaves before the outcome is durable; for transaction mode, whose reply must not be seen
 * if the transaction fails. What is written there in pieces waits in memory, so there is an end to it: above that the attempt fails and
 * whatever feeds the response is stopped, or a pipe of gigabytes would end the process. `end`: bytes stream through, but the last one
 * (where a length was announced), or else the end itself, waits; for lease mode, where the work is done as it is told. A reply that is
 * given to `end()` in one piece is held whole in both.
 *
 * A head that is the whole message, and a body that only the end of the connection ends (HTTP/1.0), wait whole in `end` too: whatever part of
 * them is seen could be taken for all. What is more than `mostHeldBytes` of such a body goes on, but for its last byte.
 *
 * With `end()` the answer is complete, and the head is fixed where it was written: changes are refused as Node refuses them.
 *
 * A client that hangs up changes nothing for the handler: what it writes is still captured, no `close` reaches it, and no `drain` is
 * kept from it, so that a pipe flows to its end and the outcome is complete. When all is over the response is as it was.
 *
 * Three parties sit on the response: those before us (outer: compression mounted earlier), we, and those after us (inner). A call
 * from the handler comes in through the inner ones and is captured as they made it. What we let through goes to the outer ones; while
 * it does (`passing`), they must see the response as it really is, not as the handler does.
 */
import type { ServerResponse } from 'node:http'
import type { StoredReply } from '../outcome.js'
import { watchConnection } from './connection.js'
import { type Head, isEventStream, takeHead } from './head.js'
import { createHeldBody } from './held-body.js'
import { breakCarrier, carrierOf, setWords, streamOf, wordsOf } from './http2.js'
import { createPatches } from './patches.js'
import { watchSources } from './sources.js'
import {
  bytesOf,
  type Callback,
  copyOfHeaders,
  headSent,
  heldTooMuch,
  later,
  lateWrite,
  linesOf,
  membersOf,
  putHead,
  setClosed,
} from './wire.js'

/** How a handler's answer ended. */
export interface Captured {
  readonly reply: StoredReply
  /** False: `reply` lacks its body, for it was a stream of events, or longer than `maxBytes`, or it broke off. */
  readonly whole: boolean
  /**
   * The answer broke off: by the handler, or (`clientGone`) because what it sent from broke with the connection, or (`tooMuch`) by us, because
   * it all had to wait in memory and came to more than `mostHeldBytes`.
   */
  readonly broken?: 'byHandler' | 'clientGone' | 'tooMuch'
}

export interface CaptureOptions {
  readonly hold: 'all' | 'end'
  /** Above this many bytes the body is not remembered. */
  readonly maxBytes: number
  /** A header that is not the handler's to set. */
  readonly drop: string
  /** How long a handler that has ended the connection may still answer, in ms: until then it may be at work. */
  readonly patienceMs: number
}

export interface Capture {
  /** Resolves once the handler has said all it will say. */
  readonly captured: Promise<Captured>
  /** Lets go what was held back. The response is as it was before. */
  release(): void
  /**
   * Takes the handler's answer back, headers included, for `write` to give another. Where bytes have left already, the connection is
   * cut, so that the client sees an incomplete reply and nothing it could take for an answer. A handler still at work finds
   * its writes ignored.
   */
  replace(write?: () => void): void
  /**
   * Tells that the handler has thrown. An answer that it had begun broke off here, whoever ends it; one that was complete stands, and
   * then the answer is false.
   */
  threw(): boolean
}

export function capture(res: ServerResponse, { hold, maxBytes, drop, patienceMs }: CaptureOptions): Capture {
  const outer = membersOf(res)
  const carrier = carrierOf(res.req)
  const before = { status: res.statusCode, message: wordsOf(res), headers: copyOfHeaders(res) }
  const patches = createPatches(res)
  const sources = watchSources(res, sourceClosed)
  let phase: 'capturing' | 'ended' | 'open' | 'ignored' = 'capturing'
  let passing = false
  let gone = false
  let closeHeld = false
  let closedHidden = false
  let thrown = false
  let thrownMidway = false
  let stopped = false
  let isBroken = false
  let untoldRefusals: Callback[] | undefined = []
  let head: Head | undefined
  let patience: NodeJS.Timeout | undefined
  const body = createHeldBody({ hold, maxBytes })
  let settle: (captured: Captured) => void = () => undefined
  const captured = new Promise<Captured>((resolve) => {
    settle = resolve
  })
  const unwatch = watchConnection(res.req, connectionEnding)
  if (res.destroyed || carrier.destroyed) clientGone()
  install()

  function install(): void {
    for (const name of ['setHeader', 'appendHeader', 'removeHeader'] as const) guard(name)
    patches.replace('writeHead', writeHead)
    patches.replace('flushHeaders', flushHeaders)
    patches.replace('write', write)
    patches.replace('end', end)
    patches.replace('destroy', destroy)
    patches.replace('emit', emit)
    patches.mask('headersSent', (real) => real || (!passing && head !== undefined))
    patches.mask('writableEnded', (real) => real || (!passing && phase === 'ended'))
    hideClosed()
    // A pipelined request's response has no connection of its own yet, and hears of no close.
    carrier.on('close', clientGone)
  }

  function uninstall(): void {
    patches.undo()
    if (closedHidden) setClosed(res, true)
    carrier.removeListener('close', clientGone)
    sources.forget()
    clearTimeout(patience)
  }

  /** As Node has it: a head that is out, as it is to the handler, is not changed. */
  function guard(name: 'setHeader' | 'appendHeader' | 'removeHeader'): void {
    const real = res[name]
    patches.replace(name, (...values: never[]) => {
      if (!isOpen() && head !== undefined) throw headSent()
      return Reflect.apply(real, res, values)
    })
  }

  /** Whether a call is not the handler's to make, or not ours to see. */
  function isOpen(): boolean {
    return passing || phase === 'open'
  }

  function pass<Result>(call: () => Result): Result {
    const nested = passing
    passing = true
    stateHead()
    try {
      return call()
    } finally {
      passing = nested
    }
  }

  function writeHead(status: number, ...rest: unknown[]): ServerResponse {
    if (isOpen()) return outer.writeHead.call(res, status, ...(rest as []))
    if (phase === 'ignored') return res
    if (head !== undefined) throw headSent()
    putHead(res, status, rest)
    setHead()
    return res
  }

  function setHead(): void {
    res.removeHeader(drop)
    head = takeHead(res)
    body.announce(head.framing, isEventStream(res))
  }

  /** A status that was set since would reach the first caller, and not the record. */
  function stateHead(): void {
    if (head === undefined) return
    res.statusCode = head.status
    setWords(res, head.message)
  }

  /** The head is written through the response itself, as Node does it, so that inner middleware has its say about headers. */
  function needHead(): void {
    if (head === undefined) res.writeHead(res.statusCode)
    if (head === undefined) setHead()
  }

  function flushHeaders(): void {
    if (isOpen()) outer.flushHeaders.call(res)
    else if (phase === 'capturing') {
      needHead()
      if (hold === 'end' && !gone && !body.isHeadHeld()) pass(() => outer.flushHeaders.call(res))
    }
  }

  function write(chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
    if (isOpen()) return Reflect.apply(outer.write, res, [chunk, encoding, callback])
    const done = (typeof encoding === 'function' ? encoding : callback) as Callback | undefined
    if (phase === 'ended') return lateWrite(res, done)
    if (stopped) return refuse(done)
    const bytes = bytesOf(chunk, encoding)
    if (phase === 'ignored') return later(done)
    needHead()
    const now = body.take(bytes)
    if (body.isTooMuch()) return stop(done)
    if (now.length === 0) return later(done)
    // Whether it reached the client is not the handler's to know: an error would stop it.
    return pass(() => Reflect.apply(outer.write, res, [now, undefined, done && (() => done(null))]))
  }

  function end(chunk?: unknown, encoding?: unknown, callback?: unknown): ServerResponse {
    if (isOpen()) return endOuter(chunk, encoding, callback)
    const done = [chunk, encoding, callback].find((one) => typeof one === 'function') as Callback | undefined
    const last = typeof chunk === 'function' ? undefined : chunk
    if (phase === 'ignored') {
      later(done)
      return res
    }
    if (phase === 'ended') {
      if (last) lateWrite(res, done)
      else if (done !== undefined) res.once('finish', done)
      return res
    }
    const bytes = last ? bytesOf(last, encoding) : undefined
    needHead()
    if (bytes !== undefined) body.takeLast(bytes)
    if (done !== undefined) res.once('finish', done)
    if (thrownMidway) {
      breakOff('byHandler')
      return res
    }
    phase = 'ended'
    const remembered = body.remembered()
    settle({ reply: replyOf(remembered), whole: remembered !== undefined })
    return res
  }

  function endOuter(...values: unknown[]): ServerResponse {
    return Reflect.apply(outer.end, res, values)
  }

  function replyOf(bytes: Uint8Array = new Uint8Array()): StoredReply {
    const { status, headers } = head ?? { status: res.statusCode, headers: [] }
    return { status, headers, body: bytes }
  }

  /** More came than may be held: the attempt has failed, and whoever writes waits until that is answered. */
  function stop(done: Callback | undefined): false {
    breakOff('tooMuch')
    phase = 'ignored'
    stopped = true
    body.goesNowhere()
    sources.unpipe()
    return refuse(done)
  }

  function refuse(done: Callback | undefined): false {
    if (done === undefined) return false
    if (untoldRefusals === undefined) process.nextTick(done, heldTooMuch())
    else untoldRefusals.push(done)
    return false
  }

  /** Behind our answer, because an error handler that finds headers sent destroys the connection. */
  function tellStopped(): void {
    for (const done of untoldRefusals ?? []) process.nextTick(done, heldTooMuch())
    untoldRefusals = undefined
    sources.destroy()
  }

  function destroy(error?: Error): ServerResponse {
    // A pipeline whose source we have stopped destroys what it fed; but our answer is still to go out there.
    if (stopped && !passing && !carrier.destroyed) return res
    // Node itself destroys responses whose connection has just ended (from version 22 or so those that wait for it, too).
    if (!gone && phase === 'capturing' && carrier.destroyed) {
      closeHeld = true
      clientGone()
      return res
    }
    if (!passing && phase === 'capturing') breakOff('byHandler')
    if (error === undefined) breakCarrier(res)
    return outer.destroy.call(res, error) as ServerResponse
  }

  /** `go` breaks the answer off; but an answer that is complete is to reach the client first. */
  function connectionEnding(by: 'request' | 'socket'): 'go' | 'wait' {
    if (phase === 'ended') return isBroken ? 'go' : 'wait'
    if (hold === 'all') breakOff('byHandler')
    // A time-out or a shutdown ends the socket as well, and the handler goes on: in lease mode nobody may come between.
    else if (by === 'request') patience ??= setTimeout(breakOff, patienceMs, 'byHandler').unref()
    return 'go'
  }

  function emit(name: string | symbol, ...values: unknown[]): boolean {
    // Over HTTP/2 a response whose client has left says that it is finished.
    const isEnd = name === 'close' || (name === 'finish' && streamOf(res)?.destroyed)
    if (!isEnd || phase === 'open' || phase === 'ignored') return outer.emit.call(res, name, ...values)
    closeHeld = true
    hideClosed()
    clientGone()
    return true
  }

  /** Node marks a response as closed when its connection is; a pipeline that starts then would see it and not start. */
  function hideClosed(): void {
    if (!res.destroyed || phase !== 'capturing') return
    closedHidden = true
    setClosed(res, false)
  }

  /** From here on nothing is sent, and nobody may wait for a client that is not there. */
  function clientGone(): void {
    if (gone) return
    gone = true
    body.goesNowhere()
    // Asked by those who would then answer with less: Koa ends without the body, and file senders drop their stream.
    patches.replace('socket', null)
    if (thrown && head !== undefined) breakOff('byHandler')
    else if (phase === 'capturing') outer.emit.call(res, 'drain')
  }

  function threw(): boolean {
    if (phase !== 'capturing') return false
    thrown = true
    thrownMidway = head !== undefined
    if (gone && thrownMidway) breakOff('byHandler')
    return true
  }

  function breakOff(broken: NonNullable<Captured['broken']>): void {
    if (phase !== 'capturing') return
    phase = 'ended'
    isBroken = true
    settle({ reply: replyOf(), whole: false, broken })
  }

  /** File senders look at the socket and drop their stream when it is gone; then nobody will ever end the reply. */
  function sourceClosed(ended: boolean): void {
    if (gone && !ended) breakOff('clientGone')
  }

  function release(): void {
    if (phase === 'open') return
    stateHead()
    uninstall()
    phase = 'open'
    const rest = body.letGo()
    stopWatching()
    if (!gone) endOuter(...(rest.length === 0 ? [] : [rest]))
    giveClose()
  }

  /** Who wanted the connection to end when the answer was given wanted it behind the answer. */
  function stopWatching(): void {
    if (unwatch()) res.once('finish', () => carrier.destroy())
  }

  function replace(write?: () => void): void {
    const unfinished = phase === 'capturing' || stopped
    const sent = pass(() => res.headersSent)
    stopWatching()
    body.goesNowhere()
    if (unfinished && write !== undefined) phase = 'ignored'
    else {
      uninstall()
      phase = 'open'
    }
    if (gone || sent) {
      if (!gone) pass(destroy)
      giveClose()
      if (stopped) tellStopped()
      return
    }
    takeHeadBack()
    // Whoever still works on this response may, when it fails, destroy the socket it finds: no other request must be on it.
    if (unfinished && streamOf(res) === undefined) res.setHeader('connection', 'close')
    if (write !== undefined) pass(write)
    if (stopped) tellStopped()
  }

  function takeHeadBack(): void {
    head = undefined
    for (const name of res.getHeaderNames()) res.removeHeader(name)
    for (const [name, value] of linesOf(before.headers)) res.setHeader(name, value as string)
    res.statusCode = before.status
    setWords(res, before.message)
  }

  function giveClose(): void {
    if (!closeHeld) return
    closeHeld = false
    outer.emit.call(res, 'close')
  }

  return { captured, release, replace, threw }
}
