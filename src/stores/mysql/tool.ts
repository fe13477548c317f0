/**
 * The driver for anything that can run a transaction and a statement: an ORM, a query builder, a client of which nothing is known here.
 *
 * The tool begins, commits and rolls back; its `transaction` is kept waiting while the attempt runs. Nothing can be sent on its connection before it has begun or after it
 * has ended: the level is asked of the tool, and what is set for the session is set behind BEGIN. So COMMIT and ROLLBACK of an attempt are sent by us, the settings are put
 * back behind them, and the tool's own end finds nothing open: with autocommit on again before it, a statement behind a deadlock would commit by itself. What the work sends is not
 * read; the save's proof of its transaction stands all the same (rule 21).
 */
import { openTransaction, type ToolTransaction } from '../tools/held.js'
import { type Isolation, rowsOf, type SqlAnswer, type SqlTool } from '../tools/tool.js'
import { viewOf } from '../tools/view.js'
import { type Answer, type Driver, type Session, textOf } from './driver.js'
import { plainly } from './errors.js'
import { begin, commit, isolation, limitIdle, rollback, settingsAsBefore } from './statements.js'

/** A tool that can run transactions in MySQL or MariaDB. */
export interface MysqlTool<Tx> {
  /** Begins at READ COMMITTED, which is what `isolation` says; commits when `work` resolves, rolls back when it rejects, and runs it once. */
  transaction<Value>(work: (tx: Tx) => Promise<Value>, isolation?: Isolation): Promise<unknown>
  /**
   * Runs one statement, in the transaction or, where there is none, on a connection of its own. Gives the rows as objects whose members stand in the order
   * of the columns; of a statement without rows what mysql2 gives, an object with `affectedRows`. What the server refuses rejects with its error, or with it as `cause`.
   */
  query(tx: Tx | undefined, text: string): Promise<SqlAnswer>
}

/** Tells a tool by its two functions, which nothing else is asked to have. */
export function isTool(handle: unknown): handle is MysqlTool<unknown> {
  if (typeof handle !== 'object' || handle === null) return false
  const { transaction, query } = handle as Partial<MysqlTool<unknown>>
  return typeof transaction === 'function' && typeof query === 'function'
}

export function toolDriver<Tx>(tool: SqlTool<Tx>): Driver<Tx> {
  return { begins: 'itself', acquire: async () => ownSession(tool), adopt: (tx) => adopted(tool, tx) }
}

const ignore = () => undefined
const nothing: Answer = { rows: [], affected: 0 }

function adopted<Tx>(tool: SqlTool<Tx>, tx: Tx): Session<Tx> {
  return {
    run: inRow((text) => ask(tool, tx, text)),
    guard: () => viewOf(tx, { seal: undefined }),
    lost: ignore,
    onLost: ignore,
    release: ignore,
    destroy: ignore,
  }
}

/** One statement behind the other, also where they are asked for at once: tools do not promise an order. */
function inRow(run: (text: string) => Promise<Answer>): (text: string) => Promise<Answer> {
  let last: Promise<unknown> = Promise.resolve()
  return (text) => {
    const answer = last.then(() => run(text))
    last = answer.catch(ignore)
    return answer
  }
}

function ownSession<Tx>(tool: SqlTool<Tx>): Session<Tx> {
  let open: ToolTransaction<Tx> | undefined
  let limited = false
  let refused: unknown
  return {
    run: inRow(run),
    guard: () => viewOf(taken().tx, { seal: tool.seal, lost: taken().lost, ends: tool.ends }),
    lost: () => open?.lost(),
    onLost: (listener) => taken().onLost(listener),
    release: giveUp,
    destroy: giveUp,
  }

  async function run(text: string): Promise<Answer> {
    // Also behind a begin that has failed: outside its transaction a statement would be one by itself.
    if (refused !== undefined) throw refused
    switch (text) {
      case begin:
        return started()
      // What the tool begins with.
      case isolation:
      // Put back behind the end, when the connection was still ours.
      case settingsAsBefore:
        return nothing
      case rollback:
        return ended('rollback')
      case commit:
        return ended('commit')
      default:
        return sent(text)
    }
  }

  async function started(): Promise<Answer> {
    try {
      open = await openTransaction(tool, 'read committed')
    } catch (error) {
      refused = plainly(error)
      throw refused
    }
    // Given up while the tool had no connection to give: nobody else would end it.
    if (refused !== undefined) await ended('rollback')
    return nothing
  }

  async function sent(text: string): Promise<Answer> {
    const gone = open?.lost()
    // The tool has given the connection back: somebody else's statements run there.
    if (gone !== undefined) throw gone
    limited ||= text.startsWith(limitIdle)
    return ask(tool, open?.tx, text)
  }

  /** Without one that is open there is nothing to roll back: a session that was lent has none. */
  async function ended(how: 'commit' | 'rollback'): Promise<Answer> {
    const ending = open
    if (ending === undefined) return nothing
    open = undefined
    const set = limited && ending.lost() === undefined
    limited = false
    if (!set) {
      await ending.end(how)
      return nothing
    }
    const sent = await ask(tool, ending.tx, how).then(ignore, (error: unknown) => ({ error }))
    // Where that fails the connection is gone, and the settings with it.
    await ask(tool, ending.tx, settingsAsBefore).catch(ignore)
    await ending.end(sent === undefined ? how : 'rollback').catch(ignore)
    if (sent !== undefined && how === 'commit') throw sent.error
    return nothing
  }

  function taken(): ToolTransaction<Tx> {
    if (open === undefined) throw new Error('no transaction was begun in this session')
    return open
  }

  /** The connection is the tool's; all there is to do is to roll back what still stands. */
  function giveUp(): void {
    refused ??= new Error('the session was given up')
    void ended('rollback')
  }
}

async function ask<Tx>(tool: SqlTool<Tx>, tx: Tx | undefined, text: string): Promise<Answer> {
  try {
    const answer = await tool.query(tx, text)
    if ('affectedRows' in answer) return { rows: [], affected: Number(answer.affectedRows) }
    return { rows: rowsOf(answer).map((row) => Object.values(row).map(textOf)), affected: 0 }
  } catch (error) {
    throw plainly(error, text)
  }
}
