/**
 * What a service promises about keys, for a client to fetch: the specification and expiry policy that sections 2.3 and 2.5.2 of the IETF
 * draft ask of a resource, and the page behind each problem's `type`.
 */
import { createHash } from 'node:crypto'
import { coreOf } from '../core.js'
import { type ErrorCode, errorTable } from '../errors.js'
import { statusesNotKept } from '../options.js'
import { replayMarker } from '../reply-headers.js'
import { optionalMethods, problemBaseOf } from './options.js'
import { problemType } from './problem.js'

/** The policy as a document. */
export interface PolicyDocument {
  readonly header: string
  readonly keyFormat: string
  readonly requiredFor: readonly string[]
  readonly optionalFor: readonly string[]
  /** How long a key's reply is kept after the first answer, in seconds. */
  readonly retentionSeconds: number
  readonly kept: { readonly statuses: string; readonly except: readonly number[] }
  /** Header and value that mark a reply as given again. */
  readonly replayMarker: { readonly header: string; readonly value: string }
  readonly statuses: Readonly<
    Record<'keyMissing' | 'keyMalformed' | 'inProgress' | 'keyReused' | 'unavailable', number>
  >
  /** Page about each problem, by code. */
  readonly problems: Readonly<Record<string, string>>
}

/** Answers `GET base` with the policy and `GET base/CODE` with the page about a problem. */
export interface PolicyHandler {
  (request: Request): Response
  readonly document: PolicyDocument
}

/**
 * Publishes what an instance promises: mount it where `problemBase` says, `/.well-known/retrysafe` by default.
 *
 * @example
 * ```ts
 * app.use('/.well-known/retrysafe', serve(policy(safe)))
 * ```
 */
export function policy(safe: object): PolicyHandler {
  const core = coreOf(safe)
  const base = problemBaseOf(core)
  const { retainMs, keep } = core.resolve(core.options.mode ?? 'lease')
  const document: PolicyDocument = {
    header: 'Idempotency-Key',
    keyFormat:
      '1 to 255 visible ASCII characters, bare (then without a comma or a quote) or as a quoted string (then with \\" for a quote and \\\\ for a backslash); one line; a UUID is a good key',
    requiredFor: ['POST', 'PATCH'],
    optionalFor: [...optionalMethods],
    retentionSeconds: Math.floor(retainMs / 1000),
    kept: keptStatuses(keep),
    replayMarker: { header: replayMarker, value: 'true' },
    statuses: {
      keyMissing: errorTable.KEY_REQUIRED.status,
      keyMalformed: errorTable.KEY_INVALID.status,
      inProgress: errorTable.IN_PROGRESS.status,
      keyReused: errorTable.KEY_REUSED.status,
      unavailable: errorTable.STORE_UNAVAILABLE.status,
    },
    problems: Object.fromEntries(codes().map((code) => [code, problemType(base, code)])),
  }

  function answer(request: Request): Response {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } })
    }
    const rest = restOf(new URL(request.url).pathname, base)
    if (rest === '') return json(document)
    const code = codes().find((one) => one === rest)
    if (code === undefined) return new Response('There is no such page.\n', { status: 404, headers: plain })
    return wantsJson(request)
      ? json({ type: problemType(base, code), code, ...errorTable[code] })
      : page(code)
  }

  return Object.assign(answer, { document })
}

function keptStatuses(keep: unknown): PolicyDocument['kept'] {
  switch (keep) {
    case 'all':
      return { statuses: '200-599', except: [] }
    case 'success':
      return { statuses: '200-399', except: [] }
    case 'default':
      return { statuses: '200-499', except: [...statusesNotKept] }
    default:
      return { statuses: 'decided for each reply', except: [] }
  }
}

function codes(): ErrorCode[] {
  return Object.keys(errorTable) as ErrorCode[]
}

/** What of a path stands behind the base, wherever the pages are mounted. */
function restOf(path: string, base: string): string | undefined {
  const mounted = base.startsWith('/') ? base : new URL(base).pathname.replace(/\/+$/, '')
  const at = path.lastIndexOf(mounted)
  return at === -1 ? undefined : path.slice(at + mounted.length).replace(/^\/|\/$/g, '')
}

const style = 'body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}'
const styleDigest = createHash('sha256').update(style).digest('base64')
const common = { 'x-content-type-options': 'nosniff', 'cache-control': 'public, max-age=3600' }
const plain = { ...common, 'content-type': 'text/plain; charset=utf-8' }

function json(value: unknown): Response {
  const headers = { ...common, vary: 'accept', 'content-type': 'application/json; charset=utf-8' }
  return new Response(`${JSON.stringify(value, undefined, 2)}\n`, { headers })
}

function wantsJson(request: Request): boolean {
  const accept = request.headers.get('accept') ?? ''
  return /\b(application\/|\+)json\b/.test(accept) && !accept.includes('text/html')
}

/** The texts are of our own table, which holds no markup. */
function page(code: ErrorCode): Response {
  const { status, title, advice, retryable } = errorTable[code]
  const again = retryable
    ? 'The same request may be sent again, unchanged, after the time in <code>Retry-After</code>.'
    : 'Sending the same request again does not help.'
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${code}</title>
<style>${style}</style></head>
<body><h1>${title}</h1><p><code>${code}</code>, status ${status}</p><p>${advice}</p><p>${again}</p></body></html>
`
  const headers = {
    ...common,
    vary: 'accept',
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleDigest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  }
  return new Response(html, { headers })
}
