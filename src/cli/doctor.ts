/** `retrysafe doctor`: a live store, compared with what the package promises about it. For people, and for CI. */
import type { Finding, Retrysafe, Store } from '../index.js'
import {
  type Command,
  durationMs,
  type Given,
  isGiven,
  type Report,
  textGiven,
  textsGiven,
} from './command.js'
import { complaintOf, unavailable } from './errors.js'
import { type Horizon, horizonGiven, horizonUsage, judgeRetention } from './horizons.js'
import { withoutSecrets } from './secrets.js'
import { kindOf, storeOptions, storeUsage, urlGiven, withSafe } from './store.js'

/** As `retrysafe()` has it when nobody says. */
const defaultRetention = '24h'
/** Counting stops here: more says nothing new. */
const countLimit = 1000

export const doctor: Command = {
  name: 'doctor',
  summary: 'checks a live store: what is wrong, what it means, what to do',
  usage: `  --retain DURATION  the retainMs of your instances; default 24h
  --horizon NAME[=D] a caller and how long it retries, to compare with --retain; may be repeated.
                     ${horizonUsage}
  --skip-records     does not look for unknown and dead records: only PostgreSQL has an index for them, other stores read every record
  --strict           a warning is bad news too
${storeUsage}`,
  details:
    'Levels: ok, note (good to know), warn (going wrong), error (a promise does not hold). Exit code 1: an error, with --strict a warning too. 2: the store could not be asked.',
  options: {
    retain: { type: 'string' },
    horizon: { type: 'string', multiple: true },
    strict: { type: 'boolean' },
    'skip-records': { type: 'boolean' },
    ...storeOptions,
  },
  run,
}

type Level = Finding['level']
const worseThan: Readonly<Record<Level, number>> = { ok: 0, note: 1, warn: 2, error: 3 }

async function run(given: Given): Promise<Report> {
  const retainMs = durationMs(textGiven(given, 'retain') ?? defaultRetention, '--retain')
  const horizons: readonly Horizon[] = textsGiven(given, 'horizon').map(horizonGiven)
  const kept = judgeRetention(retainMs, horizons)
  const { name, looked, unreachable } = await examined(given)
  const findings = [...looked, ...kept]
  const verdict = findings.reduce<Level>(
    (worst, { level }) => (worseThan[level] > worseThan[worst] ? level : worst),
    'ok',
  )
  const bad = verdict === 'error' || (verdict === 'warn' && isGiven(given, 'strict'))
  const json = { store: name, verdict: unreachable ? 'unknown' : verdict, findings }
  return { exitCode: exitCodeOf(unreachable, bad), json, text: textOf(name, findings) }
}

interface Examined {
  readonly name: string
  readonly looked: readonly Finding[]
  readonly unreachable: boolean
}

async function examined(given: Given): Promise<Examined> {
  let name = kindOf(urlGiven(given) ?? '')?.store ?? 'store'
  try {
    return await withSafe(given, async (safe, store) => {
      name = store.name
      return { name, looked: await look(given, safe, store), unreachable: false }
    })
  } catch (error) {
    // What is wrong with the command itself is no finding about a store.
    if (complaintOf(error).code !== 'STORE_UNAVAILABLE') throw error
    return { name, looked: [notReached(error, given)], unreachable: true }
  }
}

function exitCodeOf(unreachable: boolean, bad: boolean): 0 | 1 | 2 {
  if (unreachable) return 2
  return bad ? 1 : 0
}

async function look(
  given: Given,
  safe: Retrysafe<object>,
  store: Store<object>,
): Promise<readonly Finding[]> {
  const inspected = store.inspecting === undefined ? [] : await store.inspecting.inspect().catch(rethrow)
  const broken = inspected.some(({ level }) => level === 'error')
  // Where the table is missing or closed the list would only say so again.
  const skipped = isGiven(given, 'skip-records') || store.operating === undefined
  const waiting = skipped ? [] : await stuck(safe).catch((error) => (broken ? [] : rethrow(error)))
  return [
    { id: 'reachable', level: 'ok', found: `the ${store.name} store answers` },
    ...inspected,
    durability(store),
    ...waiting,
  ]
}

function rethrow(error: unknown): never {
  throw unavailable(error)
}

function notReached(error: unknown, { world }: Given): Finding {
  const { message, advice } = withoutSecrets(complaintOf(error), world)
  return {
    id: 'reachable',
    level: 'error',
    found: message,
    means: 'Nothing could be checked. Callers of a service that sees the same get 503.',
    advice,
  }
}

function durability({ guarantees, inspecting }: Store<object>): Finding {
  const id = 'guarantees'
  const { atomicWithEffect, survivesCrash, fenced } = guarantees
  const word = (yes: boolean) => (yes ? 'yes' : 'no')
  const found = `commits with the work: ${word(atomicWithEffect)}, survives a crash: ${word(survivesCrash)}, fenced: ${word(fenced)}`
  if (survivesCrash && fenced) return { id, level: 'ok', found }
  const means = survivesCrash
    ? 'A late owner can overwrite what a later one has stored.'
    : 'What is recorded may be gone after a crash of the store: a retry after that runs the work again.'
  return {
    id,
    // A store that looks at its server says there what can be done about it.
    level: inspecting === undefined ? 'warn' : 'note',
    found,
    means,
    advice: 'For anything that counts, keep records in a store that has all three or explain why not.',
  }
}

async function stuck(safe: Retrysafe<object>): Promise<readonly Finding[]> {
  const listed = (...states: ('unknown' | 'dead')[]) => safe.list({ states, limit: countLimit })
  // One question for both, unless there are so many that one state may hide the other.
  const both = await listed('unknown', 'dead')
  const unknown = both.filter(({ state }) => state === 'unknown').length
  const counts =
    both.length < countLimit
      ? [unknown, both.length - unknown]
      : [(await listed('unknown')).length, (await listed('dead')).length]
  return [
    waiting(
      'unknown',
      counts[0] ?? 0,
      'Nobody can tell whether their work took effect. Their callers get 500 OUTCOME_UNKNOWN until somebody has looked.',
      'List them with `retrysafe list --state unknown`, look at the other system, then `retrysafe resolve`.',
    ),
    waiting(
      'dead',
      counts[1] ?? 0,
      'They were given up after too many attempts. Their callers get 409 DEAD_LETTER.',
      'List them with `retrysafe list --state dead`, remove the cause, then `retrysafe release`.',
    ),
  ]
}

function waiting(state: 'unknown' | 'dead', count: number, means: string, advice: string): Finding {
  const id = `${state}-records`
  if (count === 0) return { id, level: 'ok', found: `no record is ${state}` }
  const many = count >= countLimit ? `${countLimit} or more` : String(count)
  return { id, level: 'warn', found: `${many} ${state}`, means, advice }
}

function textOf(name: string, findings: readonly Finding[]): string {
  const lines = findings.flatMap((finding) => {
    const head = `${finding.level.padEnd(6)}${finding.id.padEnd(20)} ${finding.found}`
    if (finding.level === 'ok') return [head]
    const indent = ' '.repeat(6)
    return [head, `${indent}means: ${finding.means}`, `${indent}do:    ${finding.advice}`]
  })
  const counts = (['error', 'warn', 'note', 'ok'] as const).map(
    (level) => `${findings.filter((finding) => finding.level === level).length} ${level}`,
  )
  return `${lines.join('\n')}\n\n${name}: ${counts.join(', ')}`
}
