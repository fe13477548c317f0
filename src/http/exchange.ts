/**
 * A request on its way through: who asks (key, scope), what is asked (fingerprint), what the core makes of it, and which reply that is.
 *
 * Nothing here knows a framework. An adapter says how its requests are read ({@link HttpCall}) and runs the handler when it is told to;
 * what it gets back is one of three words: let it pass, let the handler's own answer go, or send this reply instead. So no adapter
 * holds a rule of the protocol, and none can get one wrong.
 */
import type { LeaseAttempt, TransactionAttempt } from '../attempt.js'
import { systemRandom } from '../clock.js'
import { type Core, coreOf } from '../core.js'
import { fail, isRetrysafeError, type RetrysafeError } from '../errors.js'
import type { EventMap } from '../events.js'
import { armed, hit } from '../failpoints.js'
import { type Fingerprint, fingerprintOfRequest } from '../fingerprint.js'
import { checkScope, drawKey, keyFromHeader, longestName, recordDigest, recordScope } from '../key.js'
import type { Policy } from '../options.js'
import type { StoredReply } from '../outcome.js'
import { replayMarker } from '../reply-headers.js'
import { bodyValue, type Content, fieldOf } from './content.js'
import { asAccepted } from './encoding.js'
import { type HttpEnd, httpFormat, isThrown } from './format.js'
import { headerLines } from './headers.js'
import { type HttpOptions, optionalMethods, type Settings, settingsOf } from './options.js'
import { brokenReply, problemReply } from './problem.js'
import { checkReply } from './reply.js'
import { enter } from './under-way.js'
import { claimError, createUserCode, type UserCode } from './user-code.js'

/** A request, as an adapter reads it. */
export interface HttpCall {
  readonly method: string
  /** Path and query as the client sent them, before any router took its prefix off. */
  readonly target: string
  /** Name, value, name, value …: repeated headers must be seen (rule 14). */
  readonly rawHeaders: readonly string[]
  /** What `scope`, `fingerprint` and `mayReplay` are given. */
  readonly request: unknown
  /** How long the host lets this call run from now on, in ms, where it says so: neither work nor waiting gets more. */
  leftMs?(): number
  /** Reads the body without taking it from those that come later; throws `BODY_TOO_LARGE` above the limit. */
  readBody(limitBytes: number): Promise<Content | undefined>
}

/** What the handler is given. Which of `tx` and `commit` is there is settled by the mode. */
export type HttpAttempt<Tx> = TransactionAttempt<Tx> & LeaseAttempt<Tx>

/** Runs the handler. */
export type Perform<Tx> = (attempt: HttpAttempt<Tx>, body: unknown) => Promise<Performed>

/** What the handler's run came to. */
export interface Performed extends HttpEnd {
  /** What the handler threw, where the framework has already made an answer of it. */
  readonly error?: unknown
}

/** What an adapter does next. */
export type Verdict =
  /** Not covered: on to whatever comes next, unprotected. */
  | { readonly do: 'pass' }
  /** The handler's own answer stands and may now go out. */
  | { readonly do: 'own'; readonly reply: StoredReply }
  /** This is the answer, whatever the handler said. */
  | { readonly do: 'answer'; readonly reply: StoredReply }

export interface Exchange<Tx> {
  readonly settings: Settings
  /** Rejects only with what the user's own code threw: an error for the framework's error handler. */
  run(call: HttpCall, perform: Perform<Tx>): Promise<Verdict>
}

/**
 * Makes the exchange of a route. `handler: 'replies'` needs an attempt even without a key, and is given one under a key drawn for it;
 * `'around'` lets such a request pass.
 *
 * @throws `OPTION_INVALID`
 */
export function createExchange<Tx>(
  safe: object,
  options: HttpOptions<never>,
  handler: 'replies' | 'around',
): Exchange<Tx> {
  const core = coreOf<Tx>(safe)
  const settings = settingsOf(core, options)

  async function run(call: HttpCall, perform: Perform<Tx>): Promise<Verdict> {
    let intent: Admitted | 'pass' | undefined
    let leave: () => void = () => undefined
    const user = createUserCode()
    try {
      intent = await admit(core, settings, call, handler, user)
      if (intent === 'pass') return { do: 'pass' }
      leave = enter(call.request, core, { ...intent, operation: settings.operation })
      if (armed()) await hit('http.admitted')
      const policy = user.policyOf(policyFor(settings, call))
      return await execute(core, settings, call, intent, user.of(perform), policy)
    } catch (error) {
      if (user.threw(error) || !isRetrysafeError(error)) throw error
      if (error.status >= 500) core.events.emit('failed', failedEvent(settings, intent, error))
      return { do: 'answer', reply: problemReply(error, settings.problemBase) }
    } finally {
      leave()
    }
  }

  return { settings, run }
}

function policyFor({ policy }: Settings, call: HttpCall): Policy {
  const leftMs = call.leftMs?.() ?? Number.POSITIVE_INFINITY
  const workTimeoutMs = Math.min(policy.workTimeoutMs, leftMs)
  const waitMs = Math.min(policy.waitMs, leftMs)
  return leftMs === Number.POSITIVE_INFINITY ? policy : { ...policy, workTimeoutMs, waitMs }
}

/** A request that is to be done once. */
interface Admitted {
  readonly key: string
  readonly scope: string
  readonly fingerprint: Fingerprint
  readonly body: unknown
}

function failedEvent(
  { operation }: Settings,
  intent: Admitted | 'pass' | undefined,
  error: RetrysafeError,
): EventMap['failed'] {
  const { code } = error
  if (intent === undefined || intent === 'pass') return { operation, code, error }
  const record = recordDigest(intent.key, recordScope(intent.scope, operation))
  return { record, operation, code, error }
}

/** Everything that can be refused without asking the store is refused here, cheapest first. */
async function admit<Tx>(
  core: Core<Tx>,
  settings: Settings,
  call: HttpCall,
  handler: 'replies' | 'around',
  user: UserCode,
): Promise<Admitted | 'pass'> {
  const method = call.method.toUpperCase()
  if (!settings.methods.has(method) && !optionalMethods.has(method)) return 'pass'
  const sent = keyFromHeader(headerLines(call.rawHeaders, settings.header))
  const required = settings.required && settings.methods.has(method)
  const mayBeInForm = sent === undefined && settings.formField !== undefined
  if (sent === undefined && !mayBeInForm) {
    if (required) throw fail('KEY_REQUIRED')
    if (handler === 'around') return 'pass'
  }
  const scope = await scopeFor(settings, call, user)
  const content = await call.readBody(settings.maxBodyBytes)
  const body = handler === 'replies' || settings.fingerprint ? bodyValue(content) : undefined
  const fingerprint = await fingerprintFor(settings, call, content, body, user)
  // Its canonical form is left to the runner, which takes it before the work and only if there is work: a byte-equal retry costs none.
  const key = sent ?? keyFromForm(settings, content, fingerprint)
  if (key !== undefined) return { key, scope, fingerprint, body }
  if (required) throw fail('KEY_REQUIRED')
  if (handler === 'around') return 'pass'
  return { key: drawKey(core.clock, systemRandom), scope, fingerprint, body }
}

async function scopeFor({ scope }: Settings, { request }: HttpCall, user: UserCode): Promise<string> {
  return typeof scope === 'string' ? scope : checkScope(await user.of(scope)(request))
}

async function fingerprintFor(
  settings: Settings,
  call: HttpCall,
  content: Content | undefined,
  value: unknown,
  user: UserCode,
): Promise<Fingerprint> {
  const { method, target } = call
  const own = settings.fingerprint && (await user.of(settings.fingerprint)(call.request as never, value))
  if (own === undefined) return fingerprintOfRequest({ method, target, ...countedOf(content) })
  if (typeof own !== 'string' && !(own instanceof Uint8Array)) {
    throw fail('OPTION_INVALID', { detail: 'fingerprint must return a string, bytes or undefined' })
  }
  // Method and path count all the same: one key on two routes must never replay across (rule 15).
  const [path = ''] = target.split(/[?#]/, 1)
  return fingerprintOfRequest({ method, target: path, body: { bytes: Buffer.from(own) } })
}

type Counted = Pick<Parameters<typeof fingerprintOfRequest>[0], 'contentType' | 'body'>

function countedOf(content: Content | undefined): Counted {
  if (content === undefined) return { body: undefined }
  const { bytes, counted, contentType } = content
  const type = contentType === undefined ? {} : { contentType }
  return { ...type, body: bytes === undefined ? { parsed: counted ?? content.parsed } : { bytes } }
}

/** How much of the form's digest joins its key: 128 bits, so that no two forms are taken for one. */
const meaningBytes = 16

/** A key from a form has the digest of the form's meaning behind it: the same page sent with other fields is a new intent. */
function keyFromForm(
  settings: Settings,
  content: Content | undefined,
  fingerprint: Fingerprint,
): string | undefined {
  if (settings.formField === undefined) return undefined
  const field = fieldOf(content, settings.formField)
  if (field === undefined || field === '') return undefined
  if (typeof field !== 'string') throw fail('KEY_INVALID', { detail: 'the form field is not one text' })
  const meaning = Buffer.from(fingerprint.bytes()).subarray(-meaningBytes).toString('hex')
  const key = keyFromHeader([field]) ?? ''
  const longest = longestName - meaning.length - 1
  if (key.length > longest) {
    throw fail('KEY_INVALID', { detail: `a key in a form is no longer than ${longest} characters` })
  }
  // Not read again: what stood in quotes may hold a comma, and stands in none any more.
  return `${key}.${meaning}`
}

async function execute<Tx>(
  core: Core<Tx>,
  settings: Settings,
  call: HttpCall,
  { key, scope, fingerprint, body }: Admitted,
  perform: Perform<Tx>,
  policy: Policy,
): Promise<Verdict> {
  const { operation } = settings
  let performed: Performed | undefined
  let failed: Performed | undefined
  let tools: Tools<Tx> | undefined
  try {
    const answer = await core.execute<HttpEnd>(
      {
        identity: { key, scope: recordScope(scope, operation) },
        scope,
        operation,
        fingerprint,
        policy,
        isRetry: isRetry(call),
        context: call.request,
        format: httpFormat(policy, settings.keptHeaders),
      },
      async (given) => {
        tools = wrap(given)
        const ended = await perform(tools.attempt, body)
        if (armed()) await hit('http.performed')
        if (isFailure(ended, policy, tools.passedNoReturn())) {
          failed = ended
          throw ended.error
        }
        performed = ended
        return ended
      },
    )
    if (armed()) await hit('http.answer')
    if (answer.replayed)
      return { do: 'answer', reply: await again(answer.value.reply, call, policy.maxReplyBytes) }
    const committed = await tools?.committed()
    if (committed !== undefined) return { do: 'answer', reply: firstReply(committed) }
    if (performed === undefined) return { do: 'answer', reply: answer.value.reply }
    return { do: 'own', reply: firstReply(performed.reply) }
  } catch (error) {
    if (failed === undefined || !Object.is(failed.error, error)) throw error
    // The framework has answered this very error already, and all of its work is undone.
    if (failed.fault !== 'broken') return { do: 'own', reply: firstReply(failed.reply) }
    // Of an answer that broke off nobody may take the part for the whole: its status is that of work which does not stand.
    return { do: 'answer', reply: brokenReply() }
  }
}

/**
 * Whether an end is a throw to the core, which can then tell a rival's deadlock from a failure. One that broke off always is: what came of
 * it is no answer. Any other is one in lease mode, unless the handler was never entered, and past the point of no return.
 */
function isFailure(end: HttpEnd, { mode, keep }: Policy, noReturn: boolean): boolean {
  if (end.fault === 'broken') return true
  const never = mode === 'transaction' || (end.fault === 'refused' && keep !== 'all')
  return isThrown(end) && never && !noReturn
}

/** A handler that passes on another service's reply may have its marker in it; this reply is a first one all the same. */
function firstReply(reply: StoredReply): StoredReply {
  const headers = reply.headers.filter(([name]) => name.toLowerCase() !== replayMarker.toLowerCase())
  return { ...reply, headers }
}

/** Whether the client says that this is not its first try (rule 34). Believed for speed only, so a lie costs a look and no more. */
function isRetry({ rawHeaders }: HttpCall): boolean {
  const [line = ''] = headerLines(rawHeaders, 'idempotency-attempt')
  return Number(/^\s*(\d{1,4})\s*\//.exec(line)?.[1] ?? 1) > 1
}

/** An attempt as a handler gets it, and what the handler did with it. */
interface Tools<Tx> {
  readonly attempt: HttpAttempt<Tx>
  passedNoReturn(): boolean
  /** The reply that `commit` wrote down, whole: the record has only the headers that are kept, the first caller gets all. */
  committed(): Promise<StoredReply | undefined>
}

/** Over HTTP, what `commit` writes down must be a reply. */
function wrap<Tx>(given: HttpAttempt<Tx>): Tools<Tx> {
  let noReturn = false
  let committed: StoredReply | undefined
  let settled: Promise<unknown> = Promise.resolve()
  const attempt = {
    ...given,
    keepFailure: () => {
      noReturn = true
      given.keepFailure()
    },
  }

  async function commit<Value>(write: (tx: Tx) => Promise<Value> | Value): Promise<Value> {
    const written: { value?: Value; error?: unknown } = {}
    try {
      await given.commit(async (tx): Promise<HttpEnd> => {
        try {
          written.value = await write(tx)
        } catch (error) {
          written.error = error
          throw error
        }
        return {
          reply: checkReply(written.value, 'the function given to commit'),
          whole: true,
          fault: 'none',
        }
      })
    } catch (error) {
      if (error !== written.error) claimError(error)
      throw error
    }
    committed = written.value as StoredReply
    return written.value as Value
  }

  if ('commit' in given) {
    attempt.commit = (write) => {
      const before = settled
      const landing = commit(write)
      settled = landing.then(
        () => before,
        () => before,
      )
      return landing
    }
  }
  return { attempt, passedNoReturn: () => noReturn, committed: () => settled.then(() => committed) }
}

/** The stored reply as this caller can read it, marked as a replay. */
async function again(reply: StoredReply, call: HttpCall, maxReplyBytes: number): Promise<StoredReply> {
  const wanted = headerLines(call.rawHeaders, 'accept-encoding').join(',')
  const accepted = await asAccepted(reply, wanted, maxReplyBytes)
  return { ...accepted, headers: [...accepted.headers, [replayMarker, 'true']] }
}
