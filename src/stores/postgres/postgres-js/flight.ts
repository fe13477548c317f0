/**
 * Several statements in one message of the simple protocol, their values written in as literals.
 *
 * postgres.js puts a Sync behind every statement, so that a COMMIT behind a failed save would run, and it asks for the types of
 * parameters first, which costs a round trip for each statement that is not prepared. One message has one end: after an error the
 * server skips its rest. No name is needed, so a pooler in transaction mode takes it.
 */
import type { Call, Flown, Result, Row } from '../driver.js'
import { inlined, literal } from '../literals.js'
import type { Query, Wire } from './types.js'

/** Statements that a connection has prepared, by name. */
type Book = Set<string>
export type BookOf = (held: { readonly wire: Wire; readonly process: string }) => Book

/** What each connection has prepared. One that was opened again has another process behind it, which knows nothing. */
export function bookkeeping(): BookOf {
  const books = new WeakMap<Wire, { readonly process: string; readonly book: Book }>()
  return ({ wire, process }) => {
    const known = books.get(wire)
    if (known?.process === process) return known.book
    const book: Book = new Set()
    books.set(wire, { process, book })
    return book
  }
}

interface Composed {
  readonly text: string
  /** For each statement of the text which call it belongs to. */
  readonly callOf: readonly number[]
  /** Names prepared on the way, by the place of their PREPARE in the text. */
  readonly preparing: ReadonlyMap<number, string>
}

/** Makes a query of the calls; `landed` never rejects. Sent by whoever awaits or hands over the query. */
export function flightQuery(
  make: (text: string) => Query,
  calls: readonly Call[],
  book?: Book,
): { query: Query; landed: Promise<Flown> } {
  const { text, callOf, preparing } = compose(calls, book)
  const query = make(text).raw()
  // postgres.js puts a query's text into every error of its connection; this one holds keys and replies.
  Object.defineProperty(query, 'string', { get: () => 'a statement of retrysafe', set: () => undefined })
  const rows: Row[][] = calls.map(() => [])
  const count = countingOptions(query)
  query.forEachFn = (row) => {
    rows[callOf[count.completed()] ?? 0]?.push(row.map(textOf))
  }
  const landed = new Promise<Flown>((land) => {
    // Its own `then`, because awaiting a query is what sends it.
    const settled = Promise.prototype.then.bind(query as unknown as Promise<unknown>)
    settled(
      (answer) => land(read(answer)),
      (error) => land(failed(error)),
    )
  })
  return { query, landed }

  function read(answer: unknown): Flown {
    // Without this count nobody could tell which statement has failed: another version of postgres.js must not get as far as that.
    // 3.4.7 asks once more when the server is ready again.
    const more = count.completed() - callOf.length
    if (more !== 0 && more !== 1)
      return failed(new Error('this version of postgres.js reports its progress in another way'))
    remember()
    const tag = lastTag(answer)
    return {
      results: rows.map((one, at): Result => ({ rows: one, tag: at === calls.length - 1 ? tag : '' })),
    }
  }

  function failed(error: unknown): Flown {
    remember()
    return { failure: { index: callOf[count.completed()] ?? calls.length - 1, error } }
  }

  function remember(): void {
    for (const [at, name] of preparing) if (at < count.completed()) book?.add(name)
  }
}

/**
 * Counts the statements that are complete. postgres.js asks whether a query is simple when it writes it, and then once for each
 * statement that the server reports as complete; nothing else of its progress can be seen.
 */
function countingOptions(query: Query): { completed(): number } {
  let asked = 0
  query.options = Object.defineProperty({ ...query.options }, 'simple', {
    enumerable: true,
    get: () => {
      asked += 1
      return true
    },
  })
  return { completed: () => Math.max(0, asked - 1) }
}

function lastTag(answer: unknown): string {
  const results = answer as ({ command?: string } & readonly { command?: string }[]) | undefined
  return results?.command ?? results?.at(-1)?.command ?? ''
}

function textOf(value: Buffer | null): string | null {
  return value === null ? null : value.toString()
}

function compose(calls: readonly Call[], book: Book | undefined): Composed {
  const texts: string[] = []
  const callOf: number[] = []
  const preparing = new Map<number, string>()
  const prepared = new Set(book)
  for (const [at, asked] of calls.entries()) {
    const { statement, values } = asked
    const { name, text } = statement
    const named = book !== undefined && values.length > 0
    if (named && !prepared.has(name)) {
      prepared.add(name)
      preparing.set(texts.length, name)
      texts.push(`prepare "${name}" as ${text}`)
      callOf.push(at)
    }
    texts.push(named ? `execute "${name}"(${values.map(literal).join(', ')})` : inlined(asked))
    callOf.push(at)
  }
  return { text: texts.join(';\n'), callOf, preparing }
}
