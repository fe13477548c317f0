/**
 * An error of a statement of ours without what it quotes: `detail` and `where` hold the row ("Key (key, scope)=(…) already exists"), some
 * drivers add the parameters, and tools put them into the message of their own error around it. Keys and scopes do not belong into
 * events, causes and logs.
 */
import { innerErrors, saidByServer } from './inner-errors.js'

/** What tells the fault without the row; postgres.js writes `schema_name` for `schema`, and so on. */
const told = ['name', 'code', 'severity', 'hint', 'position', 'file', 'line', 'routine']
const places = ['schema', 'table', 'column', 'constraint'].flatMap((name) => [name, `${name}_name`])

/** The server's error with its values left out. What the server did not say (a broken connection) stays as it is. */
export function withoutValues(error: unknown): unknown {
  const said = saidByServer(error)
  return said === undefined ? error : plain(said)
}

function plain(said: Readonly<Record<string, unknown>>): Error {
  const members = [...told, ...places].flatMap((name) =>
    typeof said[name] === 'string' ? [[name, said[name]] as const] : [],
  )
  return Object.assign(new Error(String(said.message)), Object.fromEntries(members))
}

/** Takes a statement of ours, with its values in it, out of whatever a tool has made of it. */
export function withoutText(error: unknown, text: string): unknown {
  for (const found of innerErrors(error)) {
    for (const name of Object.getOwnPropertyNames(found)) {
      const { value, writable } = Object.getOwnPropertyDescriptor(found, name) ?? {}
      if (writable && typeof value === 'string' && value.includes(text))
        Reflect.set(
          found,
          name,
          value.replaceAll(text, () => '…'),
        )
    }
  }
  return error
}
