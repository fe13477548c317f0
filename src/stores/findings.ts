/** Findings as every store writes them, and the judgements that are the same for all of them. */
import { clockToleranceMs, type Finding } from '../store.js'

export function fine(id: string, found: string): Finding {
  return { id, level: 'ok', found }
}

export function finding(
  level: 'note' | 'warn' | 'error',
  id: string,
  found: string,
  means: string,
  advice: string,
): Finding {
  return { id, level, found, means, advice }
}

/** A duration to read, in the largest unit that is not above it, with at most one decimal. */
export function durationText(durationMs: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [name, size] = units.find(([, least]) => Math.abs(durationMs) >= least) ?? (['ms', 1] as const)
  return `${Math.round((durationMs / size) * 10) / 10} ${name}`
}

/** What the server refuses to answer is told in the place of its findings. */
export function refused(id: string, code: string): Finding {
  const advice = 'Ask again as the owner of the tables; if that fails too, it is worth a report.'
  return finding(
    'note',
    id,
    `the server refused to answer (${code})`,
    'Nothing can be told about it.',
    advice,
  )
}

/** Clocks that are further apart than this are not kept by anybody, in ms; what NTP keeps differs by less than a tenth of it. */
const suspiciousGapMs = 5000

/** The server's clock as it was read between two looks at this machine's. */
export function judgeClock(beforeMs: number, serverMs: number, afterMs: number): Finding {
  const id = 'clock'
  const gapMs = serverMs - (beforeMs + afterMs) / 2
  const apartMs = Math.max(0, Math.abs(gapMs) - (afterMs - beforeMs) / 2)
  const found = `the server's clock is ${durationText(Math.round(apartMs))} ${gapMs < 0 ? 'behind' : 'ahead of'} this machine's`
  if (apartMs <= suspiciousGapMs) return fine(id, found)
  const advice = 'Keep both by NTP (chronyc tracking, timedatectl).'
  if (apartMs <= clockToleranceMs) {
    const means =
      'Nothing breaks: the server judges every lease. A retention may last longer, by up to that much.'
    return finding('warn', id, found, means, advice)
  }
  const means =
    'More than five minutes: done keys are kept for longer than their retention, each process emits clockGap, and webhook timestamps may be refused.'
  return finding('error', id, found, means, advice)
}

/** Names of migrations: those that this version has, and those that ran. */
export function judgeMigrations(known: readonly string[], ran: readonly string[]): Finding {
  const id = 'migrations'
  const missing = known.filter((name) => !ran.includes(name))
  if (missing.length > 0) {
    const means =
      'The tables are older than this version of the package: its statements fail, callers get 503.'
    return finding('error', id, `not applied: ${missing.join(', ')}`, means, 'Run `retrysafe migrate`.')
  }
  const newer = ran.filter((name) => !known.includes(name))
  if (newer.length === 0) return fine(id, `applied: ${ran.join(', ')}`)
  const means =
    'A later version of the package has changed the tables; what this one makes of them is not known.'
  const advice = 'Upgrade the package here as well.'
  return finding('warn', id, `not known here: ${newer.join(', ')}`, means, advice)
}

export function missingTables(found: string): Finding {
  const means = 'Every caller gets 503 until the tables are there, and nothing runs.'
  const advice = 'Run `retrysafe migrate`, or apply what `retrysafe sql` prints. They lie elsewhere: name it.'
  return finding('error', 'migrations', found, means, advice)
}

/** Counting stops here: more says nothing new. */
export const countLimit = 10_001

/** Records more than an hour past their retention: the sweeper comes about every minute, so none runs, or it does not keep up. */
export function judgeOverdue(overdue: number, oldestMs: number): Finding {
  const id = 'sweeper'
  if (overdue === 0) return fine(id, 'no record is more than an hour past its retention')
  const found = `${counted(overdue)} more than an hour past their retention, the oldest by ${durationText(oldestMs)}`
  const means = 'Callers do not notice; the table grows. No process runs the sweeper, or it does not keep up.'
  const advice = 'Call safe.start() in one process at least, or run `retrysafe sweep` by the hour.'
  return finding('warn', id, found, means, advice)
}

/** Unfinished records whose lease ended more than an hour ago; undefined: they could not be counted in time. */
export function judgeLeftLying(lying: number | undefined, question: string): Finding {
  const id = 'left-lying'
  if (lying === undefined) {
    const means = 'The table is large, and no index knows running records.'
    const found = 'they could not be counted in 5 s'
    return finding('note', id, found, means, `Count them on a replica: ${question.replaceAll(/\s+/g, ' ')}`)
  }
  if (lying === 0) return fine(id, 'no owner has left a record unfinished for more than an hour')
  const found = `${counted(lying)} unfinished, and their owners gone for more than an hour`
  const means =
    'A process died in the middle, and no retry came: the work may be half done. Retries take over by themselves; these callers have given up.'
  const advice =
    'Look at what they were to do: `retrysafe list --state running`. `retrysafe release` frees one for the next attempt.'
  return finding('note', id, found, means, advice)
}

function counted(count: number): string {
  if (count >= countLimit) return `more than ${countLimit - 1} records are`
  return count === 1 ? '1 record is' : `${count} records are`
}
