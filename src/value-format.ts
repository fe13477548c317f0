/**
 * How values of the API become outcomes and back: JSON, plus `undefined` and bytes. What JSON does not keep, the first caller does not
 * get either, so first answer and replay are one (rule 9).
 */
import type { Ended, Format } from './attempt.js'
import { fail } from './errors.js'
import type { Policy } from './options.js'
import type { Outcome, StoredFailure } from './outcome.js'

export function valueFormat<Value>(policy: Policy): Format<Value> {
  function ofValue(value: Value, noReturn: boolean): Ended {
    const { keep } = policy
    const kept = noReturn || typeof keep !== 'function' || asked(keep({ status: undefined, value }))
    return { kept, failure: false, outcome: { kind: 'value', value } }
  }

  function ofError(error: unknown, noReturn: boolean): Ended {
    // In transaction mode a throw is never kept, but past the point of no return (rule 11).
    const kept = noReturn || (policy.keep === 'all' && policy.mode === 'lease')
    return { kept, failure: true, outcome: { kind: 'failure', failure: describe(error) } }
  }

  function toValue(outcome: Outcome): Value {
    switch (outcome.kind) {
      case 'value':
        return outcome.value as Value
      case 'failure':
        throw revive(outcome.failure)
      case 'unreplayable':
        throw fail('NOT_REPLAYABLE', outcome.status === undefined ? {} : { originalStatus: outcome.status })
      case 'reply':
        throw fail('RECORD_CORRUPT', { detail: 'an HTTP reply is stored under this key, not a value' })
      default:
        return outcome satisfies never
    }
  }

  return { ofValue, ofError, toValue }
}

/** A promise would count as yes, whatever it says later. */
function asked(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer
  // Its rejection is nobody's to catch any more.
  Promise.resolve(answer).catch(() => undefined)
  throw fail('OPTION_INVALID', { detail: 'keep must answer true or false, at once' })
}

/** What can be told of anything that may be thrown: a getter that throws or a value without a text must not cost the point of no return. */
function describe(error: unknown): StoredFailure {
  if (typeof error !== 'object' || error === null) return { name: 'Error', message: String(error) }
  const [name, message, code, status] = ['name', 'message', 'code', 'status'].map((member) =>
    read(error, member),
  )
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : 'The work failed',
    ...(typeof code === 'string' && { code }),
    ...(typeof status === 'number' && { status }),
  }
}

function read(from: object, member: string): unknown {
  try {
    return (from as Record<string, unknown>)[member]
  } catch {
    return undefined
  }
}

function revive(failure: StoredFailure): Error {
  const error = new Error(failure.message)
  error.name = failure.name
  return Object.assign(error, failure.code !== undefined && { code: failure.code }, {
    ...(failure.status !== undefined && { status: failure.status }),
    replayed: true,
  })
}
