/** The form of an error of ours: `application/problem+json` with a link to the page about it (RFC 9457; IETF draft, section 2.7). */
import { type ErrorCode, errorTable } from '../../errors.js'
import { adviceFor } from '../../http/problem.js'
import { equal, holds } from '../check.js'
import type { Got } from './wire.js'

/** Fails unless the answer is the problem document of that code, complete, and without anything of the request in it. */
export function isProblem(got: Got, status: number, code: ErrorCode, key?: string): void {
  const text = got.body.toString('utf8')
  equal(`the status of ${text.slice(0, 200)}`, got.status, status)
  equal('its type', got.headers['content-type'], 'application/problem+json')
  const document = JSON.parse(text) as Record<string, unknown>
  equal('code and status', { code: document.code, status: document.status }, { code, status })
  equal('the title', document.title, errorTable[code].title)
  const type = String(document.type)
  holds('the type names the code', type.endsWith(`/${code}`))
  holds('the detail says what to do', String(document.detail).includes(adviceFor(code)))
  equal('the link', got.headers.link, `<${type}>; rel="describedby"`)
  equal('a cache', got.headers['cache-control'], 'no-store')
  equal('the marker', got.replayed, false)
  if (errorTable[code].retryable) {
    holds('Retry-After is a whole number of seconds', /^[1-9]\d*$/.test(got.headers['retry-after'] ?? ''))
  }
  if (key !== undefined) holds('the key is not in it', !text.includes(key))
}
