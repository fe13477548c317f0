/**
 * How replies become outcomes and back, and which of them are kept (rule 11).
 */
import type { Ended, Format } from '../attempt.js'
import { fail } from '../errors.js'
import { type Policy, statusesNotKept } from '../options.js'
import type { Outcome, StoredReply } from '../outcome.js'
import { keptReply } from './headers.js'
import { failureReply } from './problem.js'

/** What the work of a request ended in. */
export interface HttpEnd {
  readonly reply: StoredReply
  /** False where `reply` is not all of the answer: it was a stream of events, was too large, or broke off (rule 12). */
  readonly whole: boolean
  /**
   * Whether the status was chosen (`none`) or is what a framework made of a throw, which in transaction mode is never kept; `unknown`:
   * nobody could see which. `refused`: thrown before the handler was entered, so that there is nothing to keep in any mode. `broken`: the
   * handler broke its answer off, which is a failure in every mode.
   */
  readonly fault: 'none' | 'thrown' | 'refused' | 'unknown' | 'broken'
}

export function httpFormat(policy: Policy, names: ReadonlySet<string>): Format<HttpEnd> {
  function ofValue(end: HttpEnd, noReturn: boolean): Ended {
    const { status } = end.reply
    const refused = status >= 400
    return {
      kept: noReturn || (isTrusted(end) && keeps(policy.keep, end.reply)),
      failure: status >= 500 || (noReturn && (refused || isThrown(end))),
      outcome: outcomeOf(end),
    }
  }

  /** A refusal of which nobody knows whether it was thrown is not kept: a retry of what wrote nothing is harmless. */
  function isTrusted({ fault, reply }: HttpEnd): boolean {
    if (policy.mode === 'lease' || fault === 'none') return true
    return fault === 'unknown' && reply.status < 400
  }

  function outcomeOf({ reply, whole }: HttpEnd): Outcome {
    // A 304 leaves out what it is about: another caller, without that cache, could not use it.
    if (!whole || reply.status === 304) return { kind: 'unreplayable', status: reply.status }
    return { kind: 'reply', reply: keptReply(reply, names) }
  }

  function ofError(error: unknown, noReturn: boolean): Ended {
    const kept = noReturn || (policy.mode === 'lease' && policy.keep === 'all')
    return { kept, failure: true, outcome: { kind: 'reply', reply: failureReply(error) } }
  }

  function toValue(outcome: Outcome): HttpEnd {
    switch (outcome.kind) {
      case 'reply':
        return { reply: outcome.reply, whole: true, fault: 'none' }
      case 'unreplayable':
        throw fail('NOT_REPLAYABLE', outcome.status === undefined ? {} : { originalStatus: outcome.status })
      case 'value':
      case 'failure':
        throw fail('RECORD_CORRUPT', { detail: 'the outcome stored under this key is not an HTTP reply' })
      default:
        return outcome satisfies never
    }
  }

  return { ofValue, ofError, toValue }
}

/** Whether the end is a throw, whatever status it was answered with. */
export function isThrown({ fault }: HttpEnd): boolean {
  return fault === 'thrown' || fault === 'refused' || fault === 'broken'
}

function keeps(keep: Policy['keep'], reply: StoredReply): boolean {
  const { status } = reply
  if (typeof keep === 'function') return asked(keep({ status, value: reply }))
  switch (keep) {
    case 'all':
      return true
    case 'success':
      return status < 400
    case 'default':
      return status < 500 && !statusesNotKept.has(status)
    default:
      return keep satisfies never
  }
}

/** A promise would count as yes, whatever it says later. */
function asked(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer
  // What it may reject with is not waited for, and must not end the process.
  Promise.resolve(answer).catch(() => undefined)
  throw fail('OPTION_INVALID', { detail: 'keep must answer true or false, at once' })
}
