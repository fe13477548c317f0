/**
 * An error of a statement of ours without what it quotes: `detail` and `where` hold the row ("Key (key, scope)=(…) already exists"), some
 * drivers add the parameters, and tools put them into the message of their own error around it. Keys and scopes do not belong into
 * events, causes and logs.
 */

/** What tells the fault without the row; postgres.js writes `schema_name` for `schema`, and so on. */
const told = ['name', 'code', 'severity', 'hint', 'position', 'file', 'line', 'routine']
const places = ['schema', 'table', 'column', 'constraint'].flatMap((name) => [name, `${name}_name`])

/** Errors in errors that are looked into. */
const depth = 4

/** The server's error with its values left out. What the server did not say (a broken connection) stays as it is. */
export function withoutValues(error: unknown): unknown {
  let found = error
  for (let level = 0; level < depth && typeof found === 'object' && found !== null; level += 1) {
    if ('severity' in found) return plain(found as Readonly<Record<string, unknown>>)
    found = 'cause' in found ? found.cause : undefined
  }
  return error
}

function plain(said: Readonly<Record<string, unknown>>): Error {
  const members = [...told, ...places].flatMap((name) =>
    typeof said[name] === 'string' ? [[name, said[name]] as const] : [],
  )
  return Object.assign(new Error(String(said.message)), Object.fromEntries(members))
}
