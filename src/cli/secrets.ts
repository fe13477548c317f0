/** Takes what a URL keeps secret out of a text: drivers quote what they were given when they cannot read it. */
import type { World } from './command.js'
import type { Complaint } from './errors.js'

/** The complaint without the passwords that the command line and the environment name. */
export function withoutSecrets({ code, message, advice }: Complaint, { words, env }: World): Complaint {
  const { DATABASE_URL, PGPASSWORD } = env
  const secrets = [...[...words, DATABASE_URL].flatMap(secretsIn), ...(PGPASSWORD ? [PGPASSWORD] : [])]
  const clean = (text: string) =>
    secrets
      .reduce((left, secret) => left.replaceAll(secret, '***'), text)
      .replaceAll(/(\/\/[^:/@\s]*:)[^@\s]+@/g, '$1***@')
  return { code, message: clean(message), advice: clean(advice) }
}

/** Shorter pieces are in too many words, and tell too little. */
const longPiece = 4

/**
 * The password of a URL, as it is written and as it is meant; also of one that cannot be parsed, and the pieces of one that was parsed wrongly: behind an `@` that
 * should have been `%40`, a driver takes the rest for the name of a host, and tells that there is no such host.
 */
function secretsIn(word: string | undefined): readonly string[] {
  const [, inside = ''] = /:\/\/[^:/@]*:(.*)@/s.exec(word ?? '') ?? []
  const [, parameter = ''] = /[?&]password=([^&]*)/.exec(word ?? '') ?? []
  const pieces = inside.split(/[@:/?#]/).filter(({ length }) => length >= longPiece)
  return [inside, parameter, ...pieces].flatMap((raw) => (raw === '' ? [] : [raw, decoded(raw)]))
}

function decoded(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    return raw
  }
}
