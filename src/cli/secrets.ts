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

/** The password of a URL, as it is written and as it is meant; also of one that cannot be parsed. */
function secretsIn(word: string | undefined): readonly string[] {
  const [, inside = ''] = /:\/\/[^:/@]*:(.*)@/s.exec(word ?? '') ?? []
  const [, parameter = ''] = /[?&]password=([^&]*)/.exec(word ?? '') ?? []
  return [inside, parameter].flatMap((raw) => (raw === '' ? [] : [raw, decoded(raw)]))
}

function decoded(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    return raw
  }
}
