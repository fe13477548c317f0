/**
 * The driver for anything that can run a transaction and a statement: an ORM, a query builder, a client of which nothing is known here.
 *
 * The tool begins, commits and rolls back; its `transaction` is kept waiting while the attempt runs. Each statement is a round trip of its own, with
 * its values as literals, because tools differ in how they mark parameters. What the work sends through the tool is not read; the save's proof
 * of its transaction stands all the same (rule 21).
 */
import { openTransaction, type ToolTransaction } from '../tools/held.js'
import { rowsOf, type SqlTool } from '../tools/tool.js'
import { viewOf } from '../tools/view.js'
import type { Call, Driver, Flown, Result, Row, Session } from './driver.js'
import { inlined } from './literals.js'
import { withoutText } from './plain-error.js'

/** A tool that can run transactions in PostgreSQL. */
export interface PostgresTool<Tx> {
  /** Commits when `work` resolves, rolls back when it rejects, and runs it once. */
  transaction<Value>(work: (tx: Tx) => Promise<Value>): Promise<unknown>
  /**
   * Runs one statement, in the transaction or, where there is none, on a connection of its own. Gives the rows as objects whose members stand in the
   * order of the columns. What the server refuses rejects with its error, or with it as `cause`.
   */
  query(tx: Tx | undefined, text: string): Promise<readonly object[]>
}

/** Tells a tool by its two functions, which nothing else is asked to have. */
export function isTool(handle: unknown): handle is PostgresTool<unknown> {
  if (typeof handle !== 'object' || handle === null) return false
  const { transaction, query } = handle as Partial<PostgresTool<unknown>>
  return typeof transaction === 'function' && typeof query === 'function'
}

export function toolDriver<Tx>(tool: SqlTool<Tx>): Driver<Tx> {
  return {
    beginsAnew: false,
    tellsEnd: false,
    acquire: async () => ownSession(tool),
    adopt: (tx) => adopted(tool, tx),
  }
}

function adopted<Tx>(tool: SqlTool<Tx>, tx: Tx): Session<Tx> {
  const ignore = () => undefined
  return {
    flight: (calls) => oneByOne(calls, (asked) => ask(tool, tx, asked)),
    guard: () => viewOf(tx),
    lost: ignore,
    onLost: ignore,
    release: ignore,
    destroy: ignore,
  }
}

function ownSession<Tx>(tool: SqlTool<Tx>): Session<Tx> {
  let open: ToolTransaction<Tx> | undefined
  let given = false
  let committed = false
  return {
    flight: (calls) => oneByOne(calls, run),
    guard: () => viewOf(taken().tx, { seal: tool.seal, lost: taken().lost }),
    lost: () => open?.lost(),
    onLost: (listener) => taken().onLost(listener),
    release: giveUp,
    destroy: giveUp,
  }

  async function run(asked: Call): Promise<Result> {
    const { text } = asked.statement
    if (given) throw new Error('the session was given up')
    if (text.startsWith('begin')) {
      open = await openTransaction(tool)
      // Given up while the tool had no connection to give: nobody else would end it.
      if (given) await open.end('rollback')
      // In words, and first: the tool may have begun at another level.
      return ask(tool, open.tx, asked, `set transaction ${text.slice('begin'.length)}`)
    }
    if (text === 'commit' || text === 'rollback') {
      await taken().end(text)
      committed ||= text === 'commit'
      return { rows: [], tag: text.toUpperCase() }
    }
    return ask(tool, committed ? undefined : open?.tx, asked)
  }

  function taken(): ToolTransaction<Tx> {
    if (open === undefined) throw new Error('no transaction was begun in this session')
    return open
  }

  /** The connection is the tool's; all there is to do is to roll back what still stands. */
  function giveUp(): void {
    given = true
    void open?.end('rollback')
  }
}

async function oneByOne(calls: readonly Call[], run: (asked: Call) => Promise<Result>): Promise<Flown> {
  const results: Result[] = []
  for (const asked of calls) {
    try {
      results.push(await run(asked))
    } catch (error) {
      return { failure: { index: results.length, error } }
    }
  }
  return { results }
}

async function ask<Tx>(
  tool: SqlTool<Tx>,
  tx: Tx | undefined,
  asked: Call,
  text = inlined(asked),
): Promise<Result> {
  try {
    const rows = rowsOf(await tool.query(tx, text))
    return { rows: rows.map(rowOf), tag: '' }
  } catch (error) {
    throw withoutText(error, text)
  }
}

function rowOf(row: object): Row {
  return Object.values(row).map(textOf)
}

/** The server's text for what a tool has made of it: states, counts, texts and flags are all there is. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return value ? 't' : 'f'
  return String(value)
}
