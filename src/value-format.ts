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
    const kept = noReturn || typeof keep !== 'function' || keep({ status: undefined, value })
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

function describe(error: unknown): StoredFailure {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { code, status } = error as { code?: unknown; status?: unknown }
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    ...(typeof status === 'number' && { status }),
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
