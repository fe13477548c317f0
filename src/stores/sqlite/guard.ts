/**
 * Watches over what the work writes through: the user's own connection, minus transaction control, until the attempt has settled (rule 21).
 *
 * A statement sent after the end would run in the next intent's transaction on the same connection, and one behind a transaction that SQLite has
 * rolled back by itself (ON CONFLICT ROLLBACK, a full disk) would commit alone. The save proves the transaction by itself; the guard tells the
 * author of the work at the line that is wrong.
 */
import { fail } from '../../errors.js'
import { connectionOf } from './connection.js'
import { controlsTransaction } from './control-words.js'
import { checkHandle, type SqliteHandle } from './handles.js'

export interface Guarded<Tx> {
  readonly tx: Tx
  used(): boolean
  /** Refuses every further use with `ATTEMPT_SETTLED`, or with what is given. */
  close(because?: Error): void
}

type Anything = (...parameters: unknown[]) => unknown

interface Inside {
  readonly handle: SqliteHandle
  /** Throws once the attempt that gave out the `tx` is over. */
  check(): void
}

const inside = Symbol('retrysafe.inside')

/** Functions of both drivers that end or leave the transaction, change the connection for whoever comes next, or go on after a promise. */
const refused = new Set(
  ['close', 'open', 'backup', 'serialize', 'deserialize', 'unsafeMode', 'defaultSafeIntegers'].concat(
    ['loadExtension', 'enableLoadExtension', 'createSession', 'applyChangeset', 'createTagStore'],
    ['setAuthorizer'],
  ),
)

/** The connection behind a `tx`: the caller's own, or the one that an outer attempt guards. */
export function insideOf(tx: unknown): Inside {
  if (typeof tx === 'object' && tx !== null && inside in tx) return tx[inside] as Inside
  return { handle: checkHandle(tx, 'tx must be'), check: () => undefined }
}

export function guardTx<Tx>({ handle, check }: Inside): Guarded<Tx> {
  const { inTransaction } = connectionOf(handle)
  const iterators = new Set<Iterator<unknown>>()
  let closed: Error | undefined
  let used = false

  function use(): void {
    check()
    if (closed !== undefined) throw closed
    used = true
    if (inTransaction()) return
    throw fail('TRANSACTION_ABORTED', {
      detail:
        'the transaction has ended under the work: by ON CONFLICT ROLLBACK, RAISE(ROLLBACK) or a fault of the disk',
    })
  }

  function useFor(text: unknown): void {
    use()
    const word = typeof text === 'string' ? controlsTransaction(text) : undefined
    if (word === undefined) return
    throw fail('TRANSACTION_ABORTED', {
      detail: `${word.toUpperCase()} was refused inside the work: the transaction ends with the attempt. Use SAVEPOINT for parts of it`,
    })
  }

  function member(target: SqliteHandle, name: string | symbol): unknown {
    if (name === inside) return { handle, check: use } satisfies Inside
    const value: unknown = Reflect.get(target, name)
    if (typeof value !== 'function') return name === Symbol.dispose ? undefined : value
    if (name === Symbol.dispose || refused.has(String(name))) return () => refuse(String(name))
    const run: Anything = (...parameters) => value.apply(target, parameters)
    return (...parameters: unknown[]) => {
      if (name === 'prepare' || name === 'exec') useFor(parameters[0])
      else use()
      const answer = run(...parameters)
      if (name === 'prepare') return statementOf(answer as object)
      return name === 'transaction' ? functionOf(answer as Anything) : answer
    }
  }

  const tx: object = new Proxy(handle, { get: member })

  function statementOf(statement: object): object {
    const guarded: object = new Proxy(statement, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name)
        if (name === 'database') return tx
        if (typeof value !== 'function') return value
        return (...parameters: unknown[]) => {
          use()
          const answer: unknown = value.apply(target, parameters)
          if (answer === target) return guarded
          return name === 'iterate' ? iterationOf(answer as Iterator<unknown>) : answer
        }
      },
    })
    return guarded
  }

  /** While one is open its connection takes no COMMIT: the end of the attempt closes it. */
  function iterationOf(iterator: Iterator<unknown>): IterableIterator<unknown> {
    iterators.add(iterator)
    const guarded: IterableIterator<unknown> = {
      next: () => {
        use()
        const step = iterator.next()
        if (step.done) iterators.delete(iterator)
        return step
      },
      return: (value?: unknown) => {
        iterators.delete(iterator)
        return iterator.return?.(value) ?? { done: true, value }
      },
      [Symbol.iterator]: () => guarded,
    }
    return guarded
  }

  /** What better-sqlite3's `transaction` makes: inside a transaction, a savepoint. */
  function functionOf(made: Anything): Anything {
    const guarded = (...parameters: unknown[]) => {
      use()
      return made(...parameters)
    }
    for (const kind of ['default', 'deferred', 'immediate', 'exclusive']) {
      const variant = Reflect.get(made, kind) as Anything
      Object.defineProperty(guarded, kind, {
        value: (...parameters: unknown[]) => {
          use()
          return variant(...parameters)
        },
      })
    }
    return guarded
  }

  function close(because: Error = fail('ATTEMPT_SETTLED')): void {
    closed ??= because
    for (const iterator of iterators) iterator.return?.()
    iterators.clear()
  }

  return { tx: tx as Tx, used: () => used, close }
}

function refuse(name: string): never {
  throw fail('OPTION_INVALID', {
    detail: `${name}() is not for the work: the connection is lent to it for one transaction`,
  })
}
