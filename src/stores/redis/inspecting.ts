/**
 * Compares the servers with what the store promises: asks INFO, and CONFIG GET for one setting, of each primary, and whether a write is taken. What refuses
 * writes answers everything else: a replica, a full memory, a disk that fails, an account without SET.
 */
import { clockToleranceMs, type Finding, type Inspecting } from '../../store.js'
import type { Primary, Redis } from './driver.js'
import { mark } from './lease-mode.js'
import { scripts } from './scripts.js'

/** `SET … PX` and TIME before a write are older; what is older than this has not been run. */
const leastVersion = [6, 2] as const

/** What a primary tells; undefined where it does not. */
interface Told {
  readonly info: ReadonlyMap<string, string> | undefined
  readonly appendFsync: string | undefined
  readonly clockAheadMs: number | undefined
}

export function inspecting(redis: Redis, prefix: string, survivesCrash: boolean): Inspecting {
  return { inspect }

  async function inspect(): Promise<readonly Finding[]> {
    const writing = await writable(redis, prefix)
    const primaries = await redis.primaries()
    const all = await Promise.all(primaries.map(ask))
    const each = all.flatMap((told, index) => {
      const where = all.length === 1 ? '' : ` (primary ${index + 1} of ${all.length})`
      return findingsOf(told, survivesCrash).map((one) => ({ ...one, found: `${one.found}${where}` }))
    })
    return [writing, ...each]
  }
}

async function writable(redis: Redis, prefix: string): Promise<Finding> {
  const id = 'writable'
  try {
    await redis.run(scripts.attempt, `${prefix}${mark()}`)
    return { id, level: 'ok', found: 'writes are taken' }
  } catch (error) {
    // What a server has answered begins with a code in capitals; MOVED says that another one is to be asked.
    if (!(error instanceof Error) || !/^(?!MOVED )[A-Z]{2,} /.test(error.message)) throw error
    return {
      id,
      level: 'error',
      found: `a write is refused: ${error.message.split(' script: ')[0]}`,
      means: 'No claim can be made and no outcome kept: callers get 503.',
      advice:
        'Name the primary and not a replica, allow the account SET on the names of records, or see to what the answer names.',
    }
  }
}

async function ask(primary: Primary): Promise<Told> {
  const askedAtMs = Date.now()
  const said = await unlessRefused(primary.info())
  const betweenMs = (askedAtMs + Date.now()) / 2
  const info = said === undefined ? undefined : new Map(said.split(/\r?\n/).map(pair))
  const micros = info?.get('server_time_usec')
  return {
    info,
    // Many managed servers refuse CONFIG.
    appendFsync: await unlessRefused(primary.setting('appendfsync')),
    clockAheadMs: micros === undefined ? undefined : Math.round(Number(micros) / 1000 - betweenMs),
  }
}

/** An answer, or undefined where the server has answered that it does not tell; that it cannot be asked at all is thrown. */
async function unlessRefused<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && /^(NOPERM|ERR) /.test(error.message)) return undefined
    throw error
  }
}

function pair(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1)]
}

const untold: Finding = {
  id: 'info',
  level: 'note',
  found: 'the server refuses INFO',
  means: 'Nothing can be told about what it keeps over a crash, and what it does when memory is short.',
  advice: 'Allow the account `+info`, or look at appendonly and maxmemory-policy yourself.',
}

function findingsOf(told: Told, survivesCrash: boolean): readonly Finding[] {
  const { info, appendFsync, clockAheadMs } = told
  if (info === undefined) return [untold]
  return [
    version(info.get('redis_version')),
    durability(info.get('aof_enabled'), survivesCrash),
    ...(info.get('aof_enabled') === '1' ? [flushing(appendFsync, survivesCrash)] : []),
    eviction(info.get('maxmemory_policy'), info.get('maxmemory')),
    replication(Number(info.get('connected_slaves') ?? 0)),
    ...(clockAheadMs === undefined ? [] : [clock(clockAheadMs)]),
  ]
}

function version(told: string | undefined): Finding {
  const id = 'version'
  const [major = 0, minor = 0] = (told ?? '').split('.').map(Number)
  const [leastMajor, leastMinor] = leastVersion
  if (told !== undefined && (major > leastMajor || (major === leastMajor && minor >= leastMinor)))
    return { id, level: 'ok', found: `Redis ${told}` }
  const least = leastVersion.join('.')
  return {
    id,
    level: told === undefined ? 'note' : 'error',
    found: told === undefined ? 'the server does not tell its version' : `Redis ${told}`,
    means: `The store is written for Redis ${least} and later.`,
    advice: `Run it on ${least} or later.`,
  }
}

function durability(told: string | undefined, survivesCrash: boolean): Finding {
  const id = 'appendonly'
  if (told === '1') return { id, level: 'ok', found: 'appendonly is on' }
  return {
    id,
    level: survivesCrash ? 'error' : 'warn',
    found: told === undefined ? 'the server does not tell about appendonly' : 'appendonly is off',
    means:
      'When the server process ends without a save, claims and outcomes since the last snapshot are gone, and their retries run the work again.',
    advice: survivesCrash
      ? 'Set `appendonly yes` and `appendfsync always`, or do not declare `survivesCrash: true`.'
      : 'Set `appendonly yes` and `appendfsync always`, then declare `survivesCrash: true`.',
  }
}

/**
 * With `everysec` a write waits in the memory of the process while a flush is under way, and is answered all the same: of 155,120 acknowledged writes
 * 314 were gone after twelve kills of the process; with `always` none of 24,144.
 */
function flushing(told: string | undefined, survivesCrash: boolean): Finding {
  const id = 'appendfsync'
  if (told === 'always') return { id, level: 'ok', found: 'appendfsync is always' }
  const belied = survivesCrash && told !== undefined
  const unflushed = told === 'no' ? 'warn' : 'note'
  return {
    id,
    level: belied ? 'error' : unflushed,
    found: told === undefined ? 'the server does not tell about appendfsync' : `appendfsync is ${told}`,
    means:
      told === 'no'
        ? 'When the process or the machine ends, claims and outcomes of half a minute may be gone, and their retries run the work again.'
        : 'When the process or the machine ends, claims and outcomes of the last two seconds may be gone (with `everysec`), and their retries run the work again.',
    advice: 'Set `appendfsync always`; it costs a flush for each turn of the server.',
  }
}

function eviction(told: string | undefined, limit: string | undefined): Finding {
  const id = 'maxmemory-policy'
  if (told === 'noeviction') return { id, level: 'ok', found: 'maxmemory-policy is noeviction' }
  return {
    id,
    level: told === undefined || limit === '0' ? 'warn' : 'error',
    found:
      told === undefined ? 'the server does not tell its maxmemory-policy' : `maxmemory-policy is ${told}`,
    means:
      'When memory is short the server drops records: a retry of finished work runs it again, and an owner at work loses its claim.',
    advice: 'Set `maxmemory-policy noeviction`, and keep caches on another server.',
  }
}

function replication(replicas: number): Finding {
  const id = 'replication'
  if (replicas === 0) return { id, level: 'ok', found: 'no replica is connected' }
  return {
    id,
    level: 'note',
    found: `${replicas} connected`,
    means: 'Replication is asynchronous: a replica that is promoted may lack the last claims and outcomes.',
    advice:
      'Set `min-replicas-to-write` and `min-replicas-max-lag` to keep that short; for effects that must not repeat, use a store with transactions.',
  }
}

function clock(aheadMs: number): Finding {
  const id = 'clock'
  if (Math.abs(aheadMs) <= clockToleranceMs)
    return { id, level: 'ok', found: `the clocks differ by ${Math.abs(aheadMs)} ms` }
  return {
    id,
    level: 'warn',
    found: `the server's clock is ${Math.abs(aheadMs)} ms ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine's`,
    means:
      'Retention is judged by the earlier of the two clocks: done keys are kept for longer than they need be.',
    advice: 'Set both clocks by NTP.',
  }
}
