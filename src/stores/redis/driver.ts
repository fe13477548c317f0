/** What the store asks of a client, and the limit on how long it waits for an answer. */
import type { Script } from './scripts.js'

/** A server that holds records: the only one, or a primary of a cluster. */
export interface Primary {
  /** A page of the names that match, and the cursor of the next; `0` after the last. */
  scan(
    cursor: string,
    pattern: string,
  ): Promise<{ readonly cursor: string; readonly names: readonly string[] }>
  info(): Promise<string>
  /** Refused by many managed servers. */
  setting(name: string): Promise<string | undefined>
}

export interface Driver {
  evalSha(sha: string, name: string, values: readonly string[]): Promise<unknown>
  eval(text: string, name: string, values: readonly string[]): Promise<unknown>
  primaries(): Promise<readonly Primary[]>
}

/** Names a page of SCAN looks at: some ten round trips for each 10,000 keys of the server, of about a millisecond each. */
export const pageSize = 1000

/** A reply as text: a client may be told to give bytes for strings. */
export function text(reply: unknown): string {
  return reply instanceof Uint8Array ? Buffer.from(reply).toString('utf8') : String(reply)
}

/** Runs scripts on one record, and asks servers, within the limit. */
export interface Redis {
  run(script: Script, name: string, ...values: readonly string[]): Promise<readonly string[]>
  /** The same within a limit that is shorter. */
  within(limitMs: number): Pick<Redis, 'run'>
  primaries(): Promise<readonly Primary[]>
}

/**
 * Puts the limit around a driver: both clients keep a command for as long as there is no connection, and node-redis for ever (rule 17). What did not
 * answer in time may still be carried out when the connection is back; every script is conditional, so that is a lost answer and nothing worse, and a claim is not (patience.ts).
 */
export function patient(driver: Driver, limitMs: number): Redis {
  const within = (givenMs: number): Pick<Redis, 'run'> => ({
    run: (script, name, ...values) =>
      inTime(Math.min(givenMs, limitMs), (isLate) => carryOut(driver, script, name, values, isLate)),
  })
  return {
    ...within(limitMs),
    within,
    primaries: async () => {
      const found = await inTime(limitMs, () => driver.primaries())
      return found.map((primary) => ({
        scan: (cursor, pattern) => inTime(limitMs, () => primary.scan(cursor, pattern)),
        info: () => inTime(limitMs, () => primary.info()),
        setting: (name) => inTime(limitMs, () => primary.setting(name)),
      }))
    },
  }
}

/** By its name; in full where the server does not know it, after a restart, a failover or SCRIPT FLUSH, which may come between any two commands. */
async function carryOut(
  driver: Driver,
  { sha, text: lua }: Script,
  name: string,
  values: readonly string[],
  isLate: () => boolean,
): Promise<readonly string[]> {
  let reply: unknown
  try {
    reply = await driver.evalSha(sha, name, values)
  } catch (error) {
    // Nobody waits any more: to send it now would be a write that was reported as failed.
    if (!isNoScript(error) || isLate()) throw error
    reply = await driver.eval(lua, name, values)
  }
  if (Array.isArray(reply)) return reply.map(text)
  const told = text(reply)
  // Somebody else's MULTI, sent word by word on the same connection: what becomes of it shows at its EXEC, and it is no refusal.
  if (told === 'QUEUED') throw new Error('the connection is inside a MULTI: give the store one of its own')
  return [told]
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

function inTime<Answer>(limitMs: number, ask: (isLate: () => boolean) => Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      reject(
        Object.assign(new Error(`Redis did not answer within ${limitMs} ms`), { code: 'ETIMEDOUT' as const }),
      )
    }, limitMs).unref()
    ask(() => late)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
