/**
 * Runs handlers that answer by themselves on a Node response: their answer is captured, and what becomes of it is settled here, so that an
 * adapter only says how the handlers are started.
 */
import type { ServerResponse } from 'node:http'
import { replayMarker } from '../reply-headers.js'
import { type Capture, capture } from './capture.js'
import type { HttpAttempt, Perform, Performed, Verdict } from './exchange.js'
import { mostHeldBytes } from './held-body.js'
import { sendReply } from './node.js'
import type { Settings } from './options.js'
import { failOfOurs } from './user-code.js'

/**
 * Starts the handlers. `threw` is to be called with what they throw, where that can be seen, and with whether they were refused before they
 * began; the function that is returned tells at the end whether it could.
 */
export type Start<Tx> = (
  attempt: HttpAttempt<Tx>,
  threw: (error: unknown, refused?: boolean) => void,
) => () => boolean

export interface Around<Tx> {
  readonly perform: Perform<Tx>
  /** Sends what the verdict says; false: nothing was to be sent, on to whatever comes next. */
  carryOut(verdict: Verdict): boolean
  /** Takes back what was captured, for the framework's error handler to answer. */
  giveUp(): void
}

export function createAround<Tx>(settings: Settings, res: ServerResponse, start: Start<Tx>): Around<Tx> {
  const { mode, maxReplyBytes, leaseMs } = settings.policy
  let capturing: Capture | undefined

  async function perform(attempt: HttpAttempt<Tx>): Promise<Performed> {
    const hold = mode === 'transaction' ? 'all' : 'end'
    const own = capture(res, { hold, maxBytes: maxReplyBytes, drop: replayMarker, patienceMs: leaseMs })
    capturing = own
    let thrown: { readonly error: unknown; readonly fault: 'thrown' | 'refused' } | undefined
    const seesThrows = start(attempt, (error, refused) => {
      if (own.threw()) thrown = { error, fault: refused ? 'refused' : 'thrown' }
    })
    const { reply, whole, broken } = await own.captured
    const isSure = seesThrows()
    if (broken === 'tooMuch') throw tooMuch(maxReplyBytes)
    const error = thrown === undefined ? new Error('The handler broke off its reply') : thrown.error
    // Broken off with the client's connection: in lease mode the work is done, only its reply is lost.
    const failed = broken === 'byHandler' || (broken === 'clientGone' && mode === 'transaction')
    if (failed) return { reply, whole, fault: 'broken', error }
    if (thrown !== undefined) return { reply, whole, ...thrown }
    return { reply, whole, fault: isSure ? 'none' : 'unknown' }
  }

  function carryOut(verdict: Verdict): boolean {
    switch (verdict.do) {
      case 'pass':
        return false
      case 'own':
        capturing?.release()
        return true
      case 'answer':
        if (capturing === undefined) sendReply(res, verdict.reply)
        else capturing.replace(() => sendReply(res, verdict.reply))
        return true
      default:
        return verdict satisfies never
    }
  }

  return { perform, carryOut, giveUp: () => capturing?.replace() }
}

function tooMuch(maxReplyBytes: number): Error {
  return failOfOurs('REPLY_TOO_LARGE', {
    detail: `${mostHeldBytes(maxReplyBytes)} bytes in pieces, 16 times maxReplyBytes and at least 16 MiB, are the most`,
  })
}
