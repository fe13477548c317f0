/**
 * Watches over what the work writes through: every overload of node-postgres' `query`, minus transaction control, until the
 * attempt has settled (rule 21).
 *
 * The work's own ROLLBACK would let our save commit alone (a 201 stored without an effect); its own COMMIT frees the lock (two effects);
 * a statement sent after the end runs in the next intent's transaction on the same client. All three were seen under load. The save proves
 * the transaction by itself; the guard tells the author of the work at the line that is wrong.
 */
import { fail } from '../../errors.js'
import { controlsTransaction } from './control-words.js'
import type { Guarded } from './driver.js'
import type { PgClient } from './node-postgres.js'

/** Runs something that sends, if sending is still allowed, and remembers it until it is answered. */
export type Sending = <T>(run: () => Promise<T>) => Promise<T>

interface Inside {
  readonly client: PgClient
  /** Absent where nothing stands between the client and us. */
  readonly send: Sending | undefined
}

const inside = Symbol('retrysafe.inside')

/** How often a cursor that the work left open is told to close, in ms: one that waits behind a slow statement cannot hear it yet. */
const closeEveryMs = 20

type Query = (...parameters: unknown[]) => unknown
type Callback = (...parameters: unknown[]) => unknown

/** The client behind a `tx`: the caller's own, or the one that an outer attempt guards. */
export function insideOf(tx: unknown): Inside {
  if (typeof tx !== 'object' || tx === null) throw notAClient()
  if (inside in tx) return tx[inside] as Inside
  if (!('query' in tx && typeof tx.query === 'function' && 'on' in tx && typeof tx.on === 'function'))
    throw notAClient()
  // A Pool has `query` and `on` as well, but no transaction can be open on it.
  if ('idleCount' in tx) throw notAClient()
  return { client: tx as PgClient, send: undefined }
}

function notAClient() {
  return fail('OPTION_INVALID', { detail: 'tx is not a node-postgres client with an open transaction' })
}

const through: Sending = (run) => run()
const nothingPending = Promise.resolve()
const ignore = () => undefined

export function guardTx<Tx>(client: PgClient, enclosing: Sending | undefined): Guarded<Tx> {
  const outer = enclosing ?? through
  const pending = new Set<Promise<unknown>>()
  let cursors: Set<() => void> | undefined
  let settled = false
  let used = false
  let ours: Promise<unknown> | undefined
  const query: Query = (...parameters) => {
    const refusal = settled ? fail('ATTEMPT_SETTLED') : refusalOf(parameters[0])
    used = true
    if (isSubmittable(parameters[0])) {
      if (refusal !== undefined) throw refusal
      return submit(parameters[0], parameters)
    }
    const at = parameters.findIndex((parameter) => typeof parameter === 'function')
    if (at >= 0) return withCallback(parameters, at, refusal)
    if (refusal !== undefined) return Promise.reject(refusal)
    if (enclosing === undefined && ours === undefined) return track(passed(parameters))
    return track(
      outer(async () => {
        if (ours !== undefined) await ours
        return pass(parameters)
      }),
    )
  }
  const tx = { query, [inside]: { client, send } satisfies Inside }
  return { tx: tx as unknown as Tx, used: () => used, settle, between }

  function pass(parameters: unknown[]): unknown {
    return (client.query as Query).apply(client, parameters)
  }

  /** Like an async function, without the price of one. */
  function passed(parameters: unknown[]): Promise<unknown> {
    try {
      return Promise.resolve(pass(parameters))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  function track<T>(answer: Promise<T>): Promise<T> {
    const gone = () => pending.delete(entry)
    const entry: Promise<unknown> = answer.then(gone, gone)
    pending.add(entry)
    return answer
  }

  function between<T>(run: () => Promise<T>): Promise<T> {
    const mine = track(Promise.all([...pending]).then(run))
    ours = mine.catch(() => undefined)
    return mine
  }

  /** For an attempt inside this one: its statements count as this attempt's. */
  function send<T>(run: () => Promise<T>): Promise<T> {
    if (settled) return Promise.reject(fail('ATTEMPT_SETTLED'))
    used = true
    return track(outer(run))
  }

  function withCallback(parameters: unknown[], at: number, refusal: Error | undefined): void {
    const callback = parameters[at] as Callback
    if (refusal !== undefined) {
      process.nextTick(callback, refusal)
      return
    }
    const rest = parameters.slice()
    const answered = new Promise<void>((resolve) => {
      rest[at] = (...answer: unknown[]) => {
        resolve()
        callback(...answer)
      }
    })
    const sent = outer(async () => {
      pass(rest)
      await answered
    })
    track(sent).catch(callback)
  }

  /** A cursor or a stream: it is over when its client is ready again, or with its error. */
  function submit(submittable: Submittable, parameters: unknown[]): unknown {
    let closing: NodeJS.Timeout | undefined
    const over = new Promise<void>((resolve) => {
      for (const name of ['handleReadyForQuery', 'handleError'] as const) {
        const handle = submittable[name]
        submittable[name] = (...answer) => {
          clearInterval(closing)
          resolve()
          return handle?.apply(submittable, answer)
        }
      }
    })
    const close = () => {
      closing ??= setInterval(closeCursor, closeEveryMs, submittable)
      closeCursor(submittable)
    }
    cursors ??= new Set()
    const open = cursors
    open.add(close)
    const sent = outer(async () => {
      pass(parameters)
      await over
    })
    track(sent.finally(() => open.delete(close))).catch((error) => submittable.handleError?.(error))
    return submittable
  }

  function settle(): Promise<void> {
    settled = true
    for (const close of cursors ?? []) close()
    // Nothing is added any more: one look is enough.
    return pending.size === 0 ? nothingPending : Promise.all(pending).then(ignore)
  }
}

/** pg-cursor closes; pg-query-stream and pg-copy-streams are destroyed, and the first has a cursor inside. A plain query ends by itself. */
function closeCursor(submittable: Submittable): void {
  submittable.cursor?.close?.()
  submittable.close?.()
  submittable.destroy?.()
}

interface Submittable {
  submit: unknown
  text?: unknown
  cursor?: { text?: unknown; close?: () => unknown }
  handleReadyForQuery?: Callback
  handleError?: Callback
  close?: () => unknown
  destroy?: () => unknown
}

function isSubmittable(config: unknown): config is Submittable {
  return (
    typeof config === 'object' && config !== null && 'submit' in config && typeof config.submit === 'function'
  )
}

function refusalOf(config: unknown): Error | undefined {
  const word = controlsTransaction(textOf(config))
  if (word === undefined) return undefined
  return fail('TRANSACTION_ABORTED', {
    detail: `${word.toUpperCase()} was refused inside the work: the transaction ends with the attempt. Use SAVEPOINT for parts of it`,
  })
}

function textOf(config: unknown): string {
  if (typeof config === 'string') return config
  if (typeof config !== 'object' || config === null) return ''
  if ('text' in config && typeof config.text === 'string') return config.text
  // pg-query-stream keeps its text in the cursor it drives.
  return 'cursor' in config ? textOf(config.cursor) : ''
}
