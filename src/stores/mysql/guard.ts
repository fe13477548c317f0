/**
 * Watches over what the work writes through: the client's own `query`, `execute` and `batch`, minus what ends a transaction, until the attempt has settled (rule 21).
 *
 * A statement sent after the end would run in the next intent's transaction on the same connection. The save proves the transaction by itself; the guard tells the
 * author of the work at the line that is wrong.
 */
import { fail } from '../../errors.js'
import { controlsTransaction } from './control-words.js'
import type { Guarded } from './driver.js'

/** Runs something that sends, if sending is still allowed, and remembers it until it is answered. */
export type Sending = <T>(run: () => Promise<T>) => Promise<T>

/** A client's connection and the way to send on it. */
export interface Inside {
  readonly connection: object
  readonly send: Sending
}

type Method = (...parameters: unknown[]) => unknown
type Callback = (...parameters: unknown[]) => void

const inside = Symbol('retrysafe.inside')
const methods = ['query', 'execute', 'batch'] as const

/** The connection behind a `tx` that an outer attempt guards. */
export function insideOf(tx: unknown): Inside | undefined {
  return typeof tx === 'object' && tx !== null && inside in tx ? (tx[inside] as Inside) : undefined
}

export function notAConnection() {
  return fail('OPTION_INVALID', { detail: 'tx is not a connection with an open transaction of this client' })
}

/** `writer` has the methods; `style` says whether they take a callback or give a promise. */
export function guardTx<Tx>(
  writer: object,
  style: 'callback' | 'promise',
  { connection, send: outer }: Inside,
): Guarded<Tx> {
  const pending = new Set<Promise<unknown>>()
  let settled = false
  let used = false
  const tx: Record<PropertyKey, unknown> = { [inside]: { connection, send } satisfies Inside }
  for (const name of methods) {
    const method: unknown = name in writer ? writer[name as keyof typeof writer] : undefined
    if (typeof method !== 'function') continue
    const pass: Method = (...parameters) => (method as Method).apply(writer, parameters)
    tx[name] = style === 'callback' ? calling(pass) : promising(pass)
  }
  return { tx: tx as Tx, used: () => used, settle }

  function promising(pass: Method): Method {
    return (...parameters) => {
      const refusal = refusalOf(parameters[0])
      return refusal === undefined ? send(async () => pass(...parameters)) : Promise.reject(refusal)
    }
  }

  /** Without a callback nobody would hear of the answer; a stream of rows is not watched, and refused. */
  function calling(pass: Method): Method {
    return (...parameters) => {
      const callback = parameters.at(-1)
      if (typeof callback !== 'function')
        throw fail('OPTION_INVALID', { detail: 'tx.query and tx.execute of a callback pool take a callback' })
      const refusal = refusalOf(parameters[0])
      if (refusal !== undefined) return process.nextTick(callback as Callback, refusal)
      const run = () =>
        new Promise<void>((resolve) => {
          pass(...parameters.slice(0, -1), (...answer: unknown[]) => {
            resolve()
            callback(...answer)
          })
        })
      send(run).catch(callback as Callback)
    }
  }

  function refusalOf(statement: unknown): Error | undefined {
    if (settled) return fail('ATTEMPT_SETTLED')
    used = true
    const words = controlsTransaction(sqlOf(statement))
    if (words === undefined) return undefined
    return fail('TRANSACTION_ABORTED', {
      detail: `${words.toUpperCase()} was refused inside the work: it ends the transaction, which ends with the attempt. Use SAVEPOINT for parts of it, and change tables elsewhere`,
    })
  }

  /** Also for an attempt inside this one: its statements count as this attempt's. */
  function send<T>(run: () => Promise<T>): Promise<T> {
    if (settled) return Promise.reject(fail('ATTEMPT_SETTLED'))
    used = true
    const answer = outer(run)
    const entry: Promise<unknown> = answer.then(
      () => pending.delete(entry),
      () => pending.delete(entry),
    )
    pending.add(entry)
    return answer
  }

  async function settle(): Promise<void> {
    settled = true
    // Nothing is added any more: one look is enough.
    await Promise.all(pending)
  }
}

function sqlOf(statement: unknown): string {
  if (typeof statement === 'string') return statement
  if (typeof statement !== 'object' || statement === null || !('sql' in statement)) return ''
  return typeof statement.sql === 'string' ? statement.sql : ''
}
