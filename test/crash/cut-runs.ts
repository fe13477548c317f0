/** Runs one way of running an intent again and again, each time with another fault, and keeps the log of what callers were told. */
import pg from 'pg'
import { type PostgresStore, postgres } from 'retrysafe/postgres'
import {
  type CutMessage,
  type CutPlan,
  type CuttingProxy,
  checkLedger,
  cuttingProxy,
  type LedgerFinding,
  type LoggedAttempt,
  type Told,
} from 'retrysafe/testing'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { leaseMs, openSite, payload, renewedLeaseMs, type Site, type Way } from './cut-site.js'

/** A case whose fault did not fire is void, and run again; so often at most. */
const voidTries = 3

export interface CutHall {
  readonly database: FreshDatabase
  /** Past every proxy. */
  readonly outside: pg.Pool
  readonly steady: Site
  /** The messages of a clean run that starts without a connection. */
  record(way: Way): Promise<readonly CutMessage[]>
  /** Runs each plan on a key of its own, retries on a healthy connection, and checks the ledger. */
  drive(way: Way, plans: readonly Fault[]): Promise<LedgerFinding[]>
  /** Checks again what all runs so far have left. */
  again(): Promise<LedgerFinding[]>
  close(): Promise<void>
}

/** A plan, and what to do once its message is reached. */
export interface Fault extends CutPlan {
  onReached?(hall: CutHall): Promise<void>
}

/** What a stall past the lease of a way, and past the idle limit, is. */
function stallMsOf(way: Way): number {
  return (way === 'renewed' ? renewedLeaseMs : leaseMs) * 1.4
}

/** Every message cut before it, and cut behind it. */
export function cuts(messages: readonly CutMessage[]): readonly Fault[] {
  return messages.flatMap(({ number }) =>
    (['cutBefore', 'cutAfter'] as const).map((act) => ({ at: number, act })),
  )
}

/** Every message held before it or behind it, until the lease and the idle limit are over; then it goes on, or its connection is cut. */
export function stalls(way: Way, messages: readonly CutMessage[], every: 'one' | 'all'): readonly Fault[] {
  const stallMs = stallMsOf(way)
  return messages.flatMap(({ number }) => {
    const four = (['holdBefore', 'holdAfter'] as const).flatMap((act) =>
      (['go', 'cut'] as const).map((holdEnd) => ({ at: number, act, holdMs: stallMs, holdEnd })),
    )
    return every === 'all' ? four : four.slice(number % 4, (number % 4) + 1)
  })
}

/** `lanes`: cases at once, each over a proxy of its own. */
export async function openHall(lanes = 6): Promise<CutHall> {
  const database = await freshDatabase()
  const { connectionString } = database
  const outside = new pg.Pool({ connectionString, max: 4 })
  outside.on('error', () => undefined)
  const store: PostgresStore<unknown> = postgres(outside)
  await store.migrate()
  // No unique constraint: it would hide the duplicate that is hunted.
  await outside.query('create table effects (id bigserial, key text, payload text, generation bigint)')
  const steady = await openSite(connectionString, outside)
  const target = { port: Number(new URL(connectionString).port) }
  const proxies = await Promise.all(Array.from({ length: lanes }, () => cuttingProxy(target)))
  const logs = new Map<Way, { attempts: LoggedAttempt[]; wanted: number; fired: number }>()
  const hall: CutHall = { database, outside, steady, record, drive, again, close }
  let drawn = 0
  return hall

  function drawKey(name: string): string {
    drawn += 1
    return `${name}-${drawn}`
  }

  async function over<Result>(proxy: CuttingProxy, use: (site: Site) => Promise<Result>): Promise<Result> {
    const url = new URL(connectionString)
    url.port = String(proxy.port)
    const site = await openSite(url.href, outside)
    try {
      return await use(site)
    } finally {
      await site.close()
    }
  }

  /** The shortest of three clean runs: on a busy machine one may last so long that a renewal begins, whose messages are not the way's own. */
  async function record(way: Way): Promise<readonly CutMessage[]> {
    const runs = [await recordOnce(way), await recordOnce(way), await recordOnce(way)]
    return runs.reduce((shortest, run) => (run.length < shortest.length ? run : shortest))
  }

  function recordOnce(way: Way): Promise<readonly CutMessage[]> {
    const [proxy] = proxies as [CuttingProxy]
    return over(proxy, async (site) => {
      const run = proxy.run()
      const told = await site.send(way, drawKey(`${way}-clean`))
      if (told.kind !== 'ok') throw new Error(`the clean run ended as ${JSON.stringify(told)}`)
      return [...run.messages()]
    })
  }

  async function drive(way: Way, faults: readonly Fault[]): Promise<LedgerFinding[]> {
    const log = logs.get(way) ?? { attempts: [], wanted: 0, fired: 0 }
    logs.set(way, log)
    const left = [...faults]
    log.wanted += left.length
    const lane = async (proxy: CuttingProxy) => {
      for (let fault = left.shift(); fault !== undefined; fault = left.shift()) {
        for (let tries = 0, fired = false; tries < voidTries && !fired; tries += 1) {
          fired = await one(proxy, way, fault, log.attempts)
          if (fired) log.fired += 1
        }
      }
    }
    await Promise.all(proxies.map(lane))
    return check(way)
  }

  /** One case; answers whether its fault fired. */
  async function one(
    proxy: CuttingProxy,
    way: Way,
    fault: Fault,
    attempts: LoggedAttempt[],
  ): Promise<boolean> {
    const key = drawKey(`${way}-${fault.act}-${fault.at}`)
    const log = (told: Told) => attempts.push({ key, payload, told })
    return over(proxy, async (site) => {
      const run = proxy.run(fault)
      const first = site.send(way, key)
      const reached = await Promise.race([run.reached.then(() => true), first.then(() => false)])
      if (reached) await fault.onReached?.(hall)
      if (fault.act === 'cutBefore' || fault.act === 'cutAfter') await first
      // A stalled attempt goes on while its caller, who has long given up, sends the next one.
      const definite = untilDefinite(way, key, log)
      log(await first)
      await definite
      log(await steady.send(way, key))
      return run.fired()
    })
  }

  async function untilDefinite(way: Way, key: string, log: (told: Told) => unknown): Promise<void> {
    for (let tries = 0; tries < 400; tries += 1) {
      const told = await steady.send(way, key)
      log(told)
      // A failure of an attempt is the end of it alone; what is asked here is whether the key can still be had.
      if (told.kind === 'ok') return
      await new Promise((resume) => setTimeout(resume, 20))
    }
  }

  async function check(way: Way): Promise<LedgerFinding[]> {
    const log = logs.get(way)
    if (log === undefined) return []
    const { attempts, ...faults } = log
    const keys = [...new Set(attempts.map(({ key }) => key))]
    const effects = await outside.query(
      'select key, payload, generation::float8 from effects where key = any($1)',
      [keys],
    )
    const records = await outside.query(
      'select key, generation::float8 from retrysafe.intent where key = any($1)',
      [keys],
    )
    const findings = checkLedger({ attempts, effects: effects.rows, records: records.rows, faults })
    return findings.filter(({ invariant }) => !excused(way).includes(invariant))
  }

  async function again(): Promise<LedgerFinding[]> {
    const all = await Promise.all([...logs.keys()].map(check))
    return all.flat()
  }

  async function close(): Promise<void> {
    await steady.close()
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await outside.end()
    await database.drop()
  }
}

/** Invariants that a way does not promise. */
function excused(way: Way): readonly string[] {
  switch (way) {
    // Outside `commit`, work is at least once: an attempt whose claim was lost has written all the same.
    case 'plain':
      return ['I1', 'I5']
    // The failure is kept alone: there must be no effect at all, which the test asks for.
    case 'savedAlone':
    case 'pinned':
      return ['I2']
    default:
      return []
  }
}
