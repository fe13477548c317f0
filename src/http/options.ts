/**
 * Options of a route, and the check that refuses a wrong one where it is written down.
 */
import { type Core, checkSurfaceOptions, type SurfaceOptions, surfaceOptions } from '../core.js'
import { fail } from '../errors.js'
import { checkScope, recordScope } from '../key.js'
import { checkOptions, type Options, optionNames, type Policy } from '../options.js'
import { isHeaderName } from '../reply-headers.js'
import { keptNames } from './headers.js'
import { defaultProblemBase } from './problem.js'

/** A request's body as parsed; typed as `JSON.parse` types its answer, since nobody has checked its shape. */
export type Body = ReturnType<typeof JSON.parse>

/** Options of one route; those of the instance hold where a member is left out. */
export interface HttpOptions<Request = unknown> extends Options, Omit<SurfaceOptions, 'scope'> {
  /**
   * Who a key belongs to: a text, or a function of the request. It runs before anything is looked up; what it throws goes to the
   * framework's error handler. Nothing or an empty text is `SCOPE_INVALID`, and the work does not run (rule 14). No default.
   */
  readonly scope?: string | ((request: Request) => string | Promise<string>)
  /** Whether a request without a key is refused with 400. Default true; false lets it pass unprotected. */
  readonly required?: boolean
  /**
   * Methods that are covered. Default POST and PATCH. PUT and DELETE, where not named, honour a key they are sent and need none.
   * GET, HEAD, OPTIONS and TRACE pass and cannot be named.
   */
  readonly methods?: readonly string[]
  /** The header that carries the key. Default `Idempotency-Key`. */
  readonly header?: string
  /** A field of a form that carries the key where the header is absent; a changed form is then a new intent. */
  readonly formField?: string
  /**
   * What has to be equal between a call and its retry besides method and path: a text or bytes. Undefined: query and body, as without
   * this option. It gets the body as the handler would.
   */
  readonly fingerprint?: (
    request: Request,
    body: Body,
  ) => string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>
  /** Joins the scope, so that one key may be used once per operation. 1 to 64 characters. */
  readonly operation?: string
  /** Headers that a replay repeats besides those that describe the body. Cookies, dates and framing cannot be named (rule 9). */
  readonly replayHeaders?: readonly string[]
}

/** Options that name `lease`, so that a handler's attempt is typed for it. */
export type LeaseOptions<Request> = HttpOptions<Request> & { readonly mode: 'lease' }

/** Options that name `transaction`. */
export type TransactionOptions<Request> = HttpOptions<Request> & { readonly mode: 'transaction' }

/** What an exchange goes by: everything checked, every default filled in. */
export interface Settings {
  readonly policy: Policy
  readonly scope: string | ((request: unknown) => unknown)
  readonly required: boolean
  readonly methods: ReadonlySet<string>
  readonly header: string
  readonly formField: string | undefined
  readonly fingerprint: HttpOptions['fingerprint']
  readonly operation: string | undefined
  readonly keptHeaders: ReadonlySet<string>
  readonly maxBodyBytes: number
  readonly problemBase: string
}

/** Methods that honour a key without needing one. */
export const optionalMethods: ReadonlySet<string> = new Set(['PUT', 'DELETE'])
/** Methods that do nothing worth repeating (RFC 9110, section 9.2.1): a key would only hide what is new. */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT'])

const ownNames = ['required', 'methods', 'header', 'formField', 'fingerprint', 'operation', 'replayHeaders']

/** Checks the options of a route; throws `OPTION_INVALID`. */
export function settingsOf<Tx>(core: Core<Tx>, options: HttpOptions<never>): Settings {
  checkOptions(options, [...surfaceOptions, ...ownNames])
  checkSurfaceOptions(options)
  const layer: Options = Object.fromEntries(optionNames.map((name) => [name, options[name]]))
  return {
    policy: core.resolve(undefined, layer),
    scope: scopeOf(options.scope ?? core.options.scope),
    required: flag(options.required),
    methods: methodsOf(options.methods),
    header: headerNameOf(options.header),
    formField: fieldOf(options.formField),
    fingerprint: functionOf(options.fingerprint) as HttpOptions['fingerprint'],
    operation: operationOf(options.operation),
    keptHeaders: keptNames(listOf('replayHeaders', options.replayHeaders)),
    maxBodyBytes: options.maxBodyBytes ?? core.options.maxBodyBytes ?? 1024 * 1024,
    problemBase: problemBaseOf(core, options),
  }
}

/** Where the pages about problems are, without a slash at the end. */
export function problemBaseOf<Tx>(core: Core<Tx>, options: Pick<SurfaceOptions, 'problemBase'> = {}): string {
  return (options.problemBase ?? core.options.problemBase ?? defaultProblemBase).replace(/\/+$/, '')
}

function scopeOf(scope: unknown): Settings['scope'] {
  if (scope === undefined) {
    throw fail('OPTION_INVALID', {
      detail: 'scope is not named: say who a key belongs to, per instance or per use',
    })
  }
  if (typeof scope === 'function') return scope as (request: unknown) => unknown
  return checkScope(scope)
}

function flag(required: unknown): boolean {
  if (required === undefined || typeof required === 'boolean') return required ?? true
  throw fail('OPTION_INVALID', { detail: 'required must be true or false' })
}

function methodsOf(methods: unknown): ReadonlySet<string> {
  const names = methods === undefined ? ['POST', 'PATCH'] : listOf('methods', methods)
  const upper = names.map((name) => (isHeaderName(name) ? name.toUpperCase() : ''))
  const wrong = upper.find((name) => name === '' || safeMethods.has(name))
  if (wrong !== undefined || upper.length === 0) {
    throw fail('OPTION_INVALID', {
      detail: 'methods must be a list of methods that change something, such as POST',
    })
  }
  return new Set(upper)
}

function headerNameOf(header: unknown = 'Idempotency-Key'): string {
  if (isHeaderName(header)) return header
  throw fail('OPTION_INVALID', { detail: 'header must be the name of a header' })
}

function fieldOf(field: unknown): string | undefined {
  if (field === undefined || (typeof field === 'string' && field !== '')) return field
  throw fail('OPTION_INVALID', { detail: 'formField must be the name of a field' })
}

function functionOf(given: unknown): unknown {
  if (given === undefined || typeof given === 'function') return given
  throw fail('OPTION_INVALID', { detail: 'fingerprint must be a function of the request and its body' })
}

function operationOf(operation: string | undefined): string | undefined {
  // Checked together with any scope: what is wrong with it shows now, not at the first request.
  if (operation !== undefined) recordScope('scope', operation)
  return operation
}

function listOf(name: string, list: unknown): readonly string[] {
  if (list === undefined) return []
  if (Array.isArray(list)) return list
  throw fail('OPTION_INVALID', { detail: `${name} must be a list` })
}
