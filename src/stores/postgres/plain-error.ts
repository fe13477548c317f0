/**
 * An error of a statement of ours without what it quotes: `detail` and `where` hold the row ("Key (key, scope)=(…) already exists"), some
 * drivers add the parameters, and tools put them into the message of their own error around it. Keys and scopes do not belong into
 * events, causes and logs.
 */
import { isRetrysafeError } from '../../errors.js'
import { innerErrors, saidByServer } from './inner-errors.js'

/** What tells the fault without the row; postgres.js writes `schema_name` for `schema`, and so on. */
const told = ['name', 'code', 'severity', 'hint', 'position', 'file', 'line', 'routine']
const places = ['schema', 'table', 'column', 'constraint'].flatMap((name) => [name, `${name}_name`])

/** The server's error with its values left out. What the server did not say (a broken connection) stays as it is. */
export function withoutValues(error: unknown): unknown {
  const said = saidByServer(error)
  return said === undefined ? error : plain(said, String(said.message))
}

/** What a tool has made of the failure of a statement of ours, without the statement: its values stand in it. */
export function withoutText(error: unknown, text: string): unknown {
  if (isRetrysafeError(error)) return error
  const said = saidByServer(error) ?? [...innerErrors(error)].at(-1)
  if (said === undefined) return new Error('the tool has failed')
  return plain(
    said,
    String(said.message).replaceAll(text, () => '…'),
  )
}

function plain(said: Readonly<Record<string, unknown>>, message: string): Error {
  const members = [...told, ...places].flatMap((name) =>
    typeof said[name] === 'string' ? [[name, said[name]] as const] : [],
  )
  return Object.assign(new Error(message), Object.fromEntries(members))
}
