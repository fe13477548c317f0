/** Waiting for the file by timer, outside of SQLite: the event loop goes on meanwhile (rule 37). */
import { setTimeout } from 'node:timers/promises'
import { fail } from '../../errors.js'
import { explained, isTaken } from './faults.js'

/**
 * Longest pause between two tries, in ms: a try costs some 10 µs, one waiter of each process makes them, and a process that has much to write
 * rests for longer than this now and then (gate.ts).
 */
const longestPauseMs = 3

/** How long our work may keep the event loop from turning, in ms. */
const longestTurnMs = 8

let turnBegan = 0
let turning = false

/**
 * Lets the event loop turn where statements have run for long enough without it. A file answers at once, so that a program which sends one attempt after
 * the other would never reach a timer or a socket again.
 */
async function breathe(): Promise<void> {
  const now = performance.now()
  if (!turning) {
    turning = true
    turnBegan = now
    setImmediate(() => {
      turning = false
    })
  }
  if (now - turnBegan > longestTurnMs) await new Promise((resume) => setImmediate(resume))
}

/** Runs something as soon as no rival has the file; a failure that is none of a rival's is explained and thrown. */
export async function whenFree<T>(run: () => T, limitMs: number): Promise<T> {
  await breathe()
  const until = performance.now() + limitMs
  for (let tries = 0; ; tries += 1) {
    try {
      return run()
    } catch (error) {
      if (!isTaken(error)) throw explained(error)
      if (performance.now() >= until) {
        const detail = `the database file was busy for ${limitMs} ms`
        throw fail('STORE_UNAVAILABLE', { detail, cause: error })
      }
      // Full jitter: processes that were refused together must not come back together.
      await setTimeout(Math.random() * Math.min(longestPauseMs, 2 ** tries))
    }
  }
}
