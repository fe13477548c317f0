/**
 * Whether a pooler in transaction mode stands in between: it gives each transaction whatever connection to the server is free.
 *
 * Two clients that are served by one process of the server, one after the other, are proof; so is one client that is served by two. A busy pooler
 * may hide it for a moment, so its absence is told as what was seen.
 */
import type { Finding } from '../../../store.js'
import { finding, fine } from '../../findings.js'
import { type Connection, type Connections, call } from '../driver.js'
import { textAt } from '../rows.js'
import { sqlState } from '../sql-state.js'
import { named } from '../statements.js'

const whoServes = 'select pg_backend_pid() as pid'

export async function inspectPooler(
  { dedicate }: Connections,
  prepare: boolean,
): Promise<readonly Finding[]> {
  // Out of the pool two connections might be one more than it has.
  if (dedicate === undefined) return []
  const one = await dedicate()
  try {
    const other = await dedicate()
    try {
      return [judge(await sharesServers(one, other), prepare)]
    } catch (error) {
      return [judgeRefusal(error)]
    } finally {
      other.release()
    }
  } finally {
    one.release()
  }
}

async function sharesServers(one: Connection, other: Connection): Promise<boolean> {
  const first = await servedBy(one)
  const second = await servedBy(other, 'begin read only')
  // While the other holds what may have served the one before.
  const third = await servedBy(one)
  await other.flight([call(named('rollback'))])
  return second === first || third !== first
}

async function servedBy(connection: Connection, ...before: readonly string[]): Promise<string> {
  const { results, failure } = await connection.flight(
    [...before, whoServes].map((text) => call(named(text))),
  )
  if (failure !== undefined) throw failure.error
  return textAt(results.at(-1)?.rows[0], 0)
}

const prepareAdvice =
  'Leave prepare out, or have PgBouncer 1.21 or later with max_prepared_statements above 0.'

function judge(shared: boolean, prepare: boolean): Finding {
  const id = 'pooler'
  if (!shared) return fine(id, 'no pooler in transaction mode was seen')
  const found = `a pooler in transaction mode, prepare: ${prepare}`
  if (!prepare) return fine(id, found)
  const means =
    'A statement with a name lives on one connection of the server, and the next transaction may get another. This pooler followed the names that were tried here.'
  return finding('note', id, found, means, prepareAdvice)
}

/** 26000: a name that this connection of the server does not know. 42P05: one that it knows from somebody else. */
function judgeRefusal(error: unknown): Finding {
  const code = sqlState(error)
  if (code !== '26000' && code !== '42P05') throw error
  const found = `a pooler in transaction mode refuses prepared statements (${code})`
  const means = 'Statements fail by chance, and their callers get 503.'
  return finding('error', 'pooler', found, means, prepareAdvice)
}
