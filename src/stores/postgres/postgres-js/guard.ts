/**
 * Watches over the `sql` that the work writes through: template, `unsafe`, `file`, helpers, `savepoint`; minus transaction control, until
 * the attempt has settled (rule 21).
 *
 * A query of postgres.js is sent when it is first awaited, so it is judged then, and not when it is made: one that the work has made and
 * forgotten is not sent behind its end.
 */
import { readFile } from 'node:fs'
import { promisify } from 'node:util'
import { fail } from '../../../errors.js'
import { controlsTransaction } from '../control-words.js'
import type { Guarded } from '../driver.js'
import { sqlState } from '../sql-state.js'
import { isQuery, type Maker, type Query } from './types.js'
import { watch } from './watch.js'

/** Where queries go. */
export interface Line {
  /** What sends a query that the maker has made. */
  deliver(query: Query): (query: Query) => unknown
  hear(error: unknown): void
  /** Finds out whether the connection still stands. */
  probe(): Promise<void>
  /** What closes a cursor. */
  readonly close: object
}

/** Told of each query that has failed. */
type Witness = (error: unknown) => void
type Work = (tx: unknown) => unknown

export function guardTx<Tx>(maker: Maker, line: Line): Guarded<Tx> {
  const pending = new Set<Promise<unknown>>()
  const closers = new Set<() => void>()
  let settled = false
  let used = false
  let savepoints = 0
  return { tx: makeTx() as unknown as Tx, used: () => used, settle, between: (run) => track(run()) }

  function makeTx(witness?: Witness): Maker {
    function made(first: unknown, ...rest: readonly unknown[]): unknown {
      const query = maker(first, ...rest)
      return isQuery(query) ? guarded(query, witness) : query
    }
    const unsafe: Maker['unsafe'] = (...parameters) => guarded(maker.unsafe(...parameters), witness)
    return Object.assign(made, {
      unsafe,
      file: (path: string, ...rest: readonly unknown[]) =>
        fromFile(path, guarded(maker.file(path, ...rest), witness)),
      // That of postgres.js notifies from outside the transaction.
      notify: (channel: string, payload: unknown) =>
        unsafe('select pg_notify($1, $2)', [channel, String(payload)]),
      savepoint: (...parameters: readonly unknown[]) => savepoint(parameters),
      prepare: () => Promise.reject(refusal('prepare')),
      types: maker.types,
      typed: maker.types,
      array: maker.array,
      json: maker.json,
    })
  }

  function guarded(query: Query, witness?: Witness): Query {
    const deliver = line.deliver(query)
    query.handler = (sent) => {
      const word = controlsTransaction(textOf(sent))
      if (settled) return sent.reject(fail('ATTEMPT_SETTLED'))
      if (word !== undefined) return sent.reject(refusal(word))
      used = true
      const told = (error: unknown) => {
        line.hear(error)
        witness?.(error)
      }
      track(watch(sent, { closers, close: line.close, isClosed: () => settled, witness: told }))
      return deliver(sent)
    }
    return query
  }

  function track<T>(answer: Promise<T>): Promise<T> {
    const entry: Promise<unknown> = answer.then(
      () => pending.delete(entry),
      () => pending.delete(entry),
    )
    pending.add(entry)
    return answer
  }

  /** As in postgres.js: a query that failed in it fails it, also where its error was dealt with. */
  async function savepoint(parameters: readonly unknown[]): Promise<unknown> {
    const [first, second] = parameters
    if (isTemplate(first)) return savepoint([(inner: Maker) => inner(first, ...parameters.slice(1))])
    const work = (second ?? first) as Work
    const name = `"s${savepoints++}${second === undefined ? '' : `_${String(first).replaceAll('"', '""')}`}"`
    let failure: { readonly error: unknown } | undefined
    const inner = makeTx((error) => {
      failure ??= { error }
    })
    await inner.unsafe(`savepoint ${name}`)
    try {
      const made = work(inner)
      const result = await (Array.isArray(made) ? Promise.all(made) : made)
      if (failure !== undefined) throw (failure as { readonly error: unknown }).error
      return result
    } catch (error) {
      await inner.unsafe(`rollback to savepoint ${name}`).then(undefined, () => undefined)
      throw sqlState(error) === '25P02' ? (failure?.error ?? error) : error
    }
  }

  async function settle(): Promise<void> {
    settled = true
    for (const close of closers) close()
    // Nothing is added any more: one look is enough.
    await Promise.all(pending)
    await line.probe()
  }
}

function refusal(word: string): Error {
  return fail('TRANSACTION_ABORTED', {
    detail: `${word.toUpperCase()} was refused inside the work: the transaction ends with the attempt. Use tx.savepoint for parts of it`,
  })
}

/** postgres.js would hand the query to its pool once it has read the file. */
function fromFile(path: string, query: Query): Query {
  const handler = query.handler
  query.handler = async (sent) => {
    try {
      sent.strings = [await promisify(readFile)(path, 'utf8')]
      handler(sent)
    } catch (error) {
      sent.reject(error)
    }
  }
  return query
}

function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && 'raw' in value
}

/** The query's text, with those of the queries that are parts of it; values and helpers are names to it. */
function textOf({ strings, args }: Query): string {
  return strings.map((text, at) => (at === strings.length - 1 ? text : `${text}${partOf(args[at])}`)).join('')
}

function partOf(argument: unknown): string {
  if (isQuery(argument)) return textOf(argument)
  if (Array.isArray(argument) && isQuery(argument[0])) return argument.map(partOf).join(' ')
  return ' x '
}
