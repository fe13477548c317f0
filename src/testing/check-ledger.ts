/**
 * Reads a log of attempts against the effects that are there: what must hold of every intent, whatever was killed, cut or paused.
 *
 * It knows no database and no transport. Feed it what callers were told and what a table WITHOUT a unique constraint holds (a constraint
 * would hide the duplicate), at once after the faults have stopped and again later.
 */
import type { Effect } from './store/harness.js'

/** What one attempt was told. */
export type Told =
  /** A definite success; `answer` is all of it that must be equal among attempts. */
  | { readonly kind: 'ok'; readonly answer: string; readonly replayed: boolean }
  /** A definite refusal: this attempt was not executed, and no other answer will come for it. */
  | { readonly kind: 'fail'; readonly code: string }
  /** Nobody can know: a broken connection, a time limit, or an answer that says to come back. It counts as both. */
  | { readonly kind: 'info' }

/** One attempt, in the order in which they ended. */
export interface LoggedAttempt {
  readonly key: string
  /** Who asked. Default: one and the same for all. */
  readonly scope?: string
  readonly payload: string
  readonly told: Told
}

/** An effect, with its scope where the log names scopes. */
export interface LoggedEffect extends Effect {
  readonly scope?: string
}

/** What the caller of {@link checkLedger} found. */
export interface LedgerFinding {
  /** `I1` duplicate, `I2` loss, `I3` divergence, `I4` another payload, `I5` superseded, `I6` executed though refused, `I7` no answer, `I9` another's answer, `I11` void. */
  readonly invariant: 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I9' | 'I11'
  readonly key: string
  readonly detail: string
}

export interface LedgerCheck {
  readonly attempts: readonly LoggedAttempt[]
  readonly effects: readonly LoggedEffect[]
  /** Generation that each record carries now; where given, effects of another generation are superseded ones. */
  readonly records?: readonly { readonly key: string; readonly scope?: string; readonly generation: number }[]
  /** How many faults were asked for, and how many fired: fewer, and the run has shown nothing. */
  readonly faults?: { readonly wanted: number; readonly fired: number }
}

interface IntentLog {
  readonly key: string
  readonly scope: string
  readonly attempts: LoggedAttempt[]
  readonly effects: LoggedEffect[]
  generation?: number
}

/**
 * Checks the log of a run; an empty list means that every intent took effect exactly once or was definitely refused.
 *
 * Answers must differ between intents (let each carry the id of its effect), so that an answer that reached the wrong caller shows.
 *
 * @example
 * ```ts
 * const findings = checkLedger({
 *   attempts: [{ key: 'k1', payload: 'c1', told: { kind: 'ok', answer: '{"id":7}', replayed: false } }],
 *   effects: [{ key: 'k1', payload: 'c1', generation: 1 }],
 *   faults: { wanted: 1, fired: 1 },
 * })
 * if (findings.length > 0) throw new Error(JSON.stringify(findings, null, 2))
 * ```
 */
export function checkLedger({ attempts, effects, records = [], faults }: LedgerCheck): LedgerFinding[] {
  const findings: LedgerFinding[] = []
  const intents = new Map<string, IntentLog>()

  function of({ key, scope = '' }: { readonly key: string; readonly scope?: string }): IntentLog {
    const name = JSON.stringify([scope, key])
    const intent = intents.get(name) ?? { key, scope, attempts: [], effects: [] }
    intents.set(name, intent)
    return intent
  }

  if (attempts.length === 0) findings.push({ invariant: 'I11', key: '', detail: 'no attempt was logged' })
  if (faults !== undefined && faults.fired < faults.wanted) {
    const detail = `${faults.fired} of ${faults.wanted} faults fired`
    findings.push({ invariant: 'I11', key: '', detail })
  }
  for (const attempt of attempts) of(attempt).attempts.push(attempt)
  for (const effect of effects) of(effect).effects.push(effect)
  for (const record of records) of(record).generation = record.generation
  for (const intent of intents.values()) findings.push(...findingsOf(intent))
  return [...findings, ...strangers(attempts)]
}

function findingsOf(intent: IntentLog): LedgerFinding[] {
  const { key, attempts, effects, generation } = intent
  const findings: LedgerFinding[] = []
  const find = (invariant: LedgerFinding['invariant'], detail: string) =>
    findings.push({ invariant, key, detail })
  const oks = attempts.flatMap(({ payload, told }) => (told.kind === 'ok' ? [{ payload, ...told }] : []))
  const refused = attempts.filter(({ told }) => told.kind === 'fail')
  const payloads = new Set(effects.map(({ payload }) => payload))

  if (effects.length > 1) find('I1', `${effects.length} effects`)
  if (oks.length > 0 && effects.length === 0)
    find('I2', 'it was told to have succeeded, and nothing is there')
  const answers = new Set(oks.map(({ answer }) => answer))
  if (answers.size > 1) find('I3', `different answers: ${[...answers].join(' | ')}`)
  const firsts = oks.filter(({ replayed }) => !replayed)
  if (firsts.length > 1) find('I3', `${firsts.length} first answers`)
  for (const { payload } of oks) {
    if (effects.length > 0 && !payloads.has(payload))
      find('I4', `an answer for ${payload}, which has no effect`)
  }
  for (const effect of effects) {
    if (generation !== undefined && effect.generation !== generation)
      find('I5', `an effect of generation ${effect.generation}; the record has ${generation}`)
  }
  const mayBe = new Set(attempts.filter(({ told }) => told.kind !== 'fail').map(({ payload }) => payload))
  for (const { payload, told } of refused) {
    if (payloads.has(payload) && !mayBe.has(payload))
      find('I6', `an effect of ${payload}, which was refused with ${told.kind === 'fail' ? told.code : ''}`)
  }
  if (attempts.length > 0 && oks.length + refused.length === 0) find('I7', 'no attempt got a definite answer')
  if (attempts.length === 0 && effects.length > 0) find('I6', 'an effect that nobody asked for')
  return findings
}

/** The same answer under two intents: somebody saw what was another's. */
function strangers(attempts: readonly LoggedAttempt[]): LedgerFinding[] {
  const owners = new Map<string, string>()
  const findings: LedgerFinding[] = []
  for (const { key, scope = '', told } of attempts) {
    if (told.kind !== 'ok') continue
    const owner = JSON.stringify([scope, key])
    const first = owners.get(told.answer) ?? owner
    owners.set(told.answer, first)
    if (first !== owner) findings.push({ invariant: 'I9', key, detail: `the answer of ${first}` })
  }
  return findings
}
