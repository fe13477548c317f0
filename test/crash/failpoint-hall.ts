/** Drives named moments of the library in processes that die, stop or throw there, and keeps the log. */
import { readFileSync } from 'node:fs'
import { checkLedger, type LedgerFinding, type LoggedAttempt, type Told as Said } from 'retrysafe/testing'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { until } from '../setup/until.js'
import type { FailpointCase } from './failpoint-cases.js'
import {
  type FailpointAct,
  type Ledger,
  openLedger,
  type Service,
  send,
  startService,
  type Told,
} from './service.js'

/** Short, because a stop lasts until it is over. Also the limit of a silent transaction. */
const leaseMs = '500'

export interface FailpointHall {
  readonly ledger: Ledger
  readonly steady: Service
  /** A service that may be broken; `use` is given one that is whole. */
  drive(work: readonly (() => Promise<void>)[], lanes: number): Promise<void>
  runCase(one: FailpointCase, name: string, act: FailpointAct): Promise<void>
  victim(): Promise<Service>
  /** Everything found in the log so far. */
  findings(): Promise<LedgerFinding[]>
  close(): Promise<void>
}

interface Log {
  readonly attempts: LoggedAttempt[]
  readonly excused: readonly string[]
}

export async function openFailpointHall(): Promise<FailpointHall> {
  const database: FreshDatabase = await freshDatabase()
  const ledger = await openLedger(database.connectionString)
  const start = (env: Record<string, string> = {}) =>
    startService(database.connectionString, { LEASE_MS: leaseMs, WORK_TIMEOUT_MS: leaseMs, ...env })
  const steady = await start()
  await send(steady.url, '/transaction', 'rival', { rival: 'rival' })
  const whole: Service[] = []
  const all: Service[] = []
  const logs: Log[] = []
  /** Cases whose moment was not reached have shown nothing. */
  const unreached: string[] = []
  return { ledger, steady, drive, runCase, victim, findings, close }

  /** One that has survived earlier cases, or a new one. */
  async function victim(): Promise<Service> {
    const again = whole.pop()
    if (again !== undefined) return again
    const service = await start({ WAIT_MS: '300', SERVICE_NAME: 'victim' })
    all.push(service)
    return service
  }

  async function drive(work: readonly (() => Promise<void>)[], lanes: number): Promise<void> {
    const left = [...work]
    const lane = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await next()
    }
    await Promise.all(Array.from({ length: lanes }, lane))
  }

  async function runCase(one: FailpointCase, name: string, act: FailpointAct): Promise<void> {
    const key = `${name}-${act}`
    const attempts: LoggedAttempt[] = []
    logs.push({ attempts, excused: one.excused ?? [] })
    const log = (told: Told | undefined) => attempts.push({ key, payload: 'p', told: saidOf(told) })
    const ask = (service: Service) => send(service.url, one.path, key, one.body ?? {})
    if (one.prepare !== undefined) {
      const first = await ask(steady)
      if (one.end === 'unknown') log(first)
      await one.prepare(ledger, key)
    }
    const service = await victim()
    if (one.fault !== undefined) await service.fault(...one.fault)
    await service.failAt(name, act)
    // The second one follows the first in the same process: it must not hang on it.
    const flying = Promise.all([ask(service), ...(act === 'throw' ? [ask(service)] : [])])
    if (act === 'stop') await stopped(service, flying)
    if (act !== 'stop') for (const told of await flying) log(told)
    const definite = untilDefinite(one, () => ask(steady), log)
    if (act === 'stop') {
      await definite
      service.process.kill('SIGCONT')
      for (const told of await flying) log(told)
    }
    await definite
    log(await ask(steady))
    if (act === 'kill') {
      await service.kill('SIGTERM')
      if (service.process.signalCode !== 'SIGKILL') unreached.push(key)
      return
    }
    if ((await service.hits()) === 0) unreached.push(key)
    whole.push(service)
  }

  async function findings(): Promise<LedgerFinding[]> {
    const effects = await ledger.pool.query('select key, generation::float8 from effects')
    const records = await ledger.pool.query('select key, generation::float8 from retrysafe.intent')
    const perCase = logs.flatMap(({ attempts, excused }) => {
      const mine = ({ key }: { key: string }) => key === attempts[0]?.key
      const found = checkLedger({
        attempts,
        effects: effects.rows.filter(mine).map((row) => ({ ...row, payload: 'p' })),
        records: records.rows.filter(mine),
      })
      return found.filter(({ invariant }) => !excused.includes(invariant))
    })
    const answers = logs.filter(({ excused }) => !excused.includes('I9')).flatMap(({ attempts }) => attempts)
    const strangers = checkLedger({ attempts: answers, effects: [] })
    const idle = unreached.map((key) => ({ invariant: 'I11' as const, key, detail: 'it was not reached' }))
    return [...perCase, ...strangers.filter(({ invariant }) => invariant === 'I9'), ...idle]
  }

  async function close(): Promise<void> {
    await Promise.all([...all, steady].map((service) => service.kill()))
    await ledger.pool.end()
    await database.drop()
  }
}

async function untilDefinite(
  one: FailpointCase,
  ask: () => Promise<Told | undefined>,
  log: (told: Told | undefined) => unknown,
): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const told = await ask()
    log(told)
    if (told?.status === 201 || (one.end === 'unknown' && told?.body.includes('OUTCOME_UNKNOWN'))) return
    await new Promise((resume) => setTimeout(resume, 20))
  }
}

/** Resolves when the process stands still; rejects when its request ended before. */
export async function stopped(service: Service, flying: Promise<unknown>): Promise<void> {
  let over = false
  flying.then(() => {
    over = true
  })
  await until(() => {
    if (over) throw new Error('the moment was not reached')
    const stat = readFileSync(`/proc/${service.process.pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T')
  }, 'the stop')
}

function saidOf(told: Told | undefined): Said {
  if (told === undefined || told.status === 409 || told.status === 503) return { kind: 'info' }
  if (told.status === 201) return { kind: 'ok', answer: told.body, replayed: told.replayed }
  return { kind: 'fail', code: `${told.status} ${told.body}` }
}
