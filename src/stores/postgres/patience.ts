/**
 * Nobody waits for ever: a database that accepts connections and never answers is as good as down (rule 17).
 *
 * Every round trip of ours, and every connection asked of a pool, has a limit. A session that did not answer in time is destroyed: what it
 * was asked may still be carried out, so behind a COMMIT that is an unclear end (rule 10), and elsewhere it rolls back with its
 * connection. The work's own statements are not ours to limit; they have `workTimeoutMs`.
 */
import type { Call, Connection, Driver, Flown, Session } from './driver.js'

const timedOut = Symbol('retrysafe.timedOut')

/** Whether an error is ours for an answer that did not come in time. */
export function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && timedOut in error
}

function timeout(what: string, limitMs: number): Error {
  return Object.assign(new Error(`${what} within ${limitMs} ms`), { [timedOut]: true })
}

/** Puts the limit around a driver. */
export function patient<Tx>(driver: Driver<Tx>, limitMs: number): Driver<Tx> {
  const { dedicate } = driver
  return {
    ...driver,
    acquire: () => inTime(driver.acquire(), limitMs),
    adopt: (tx) => limited(driver.adopt(tx), limitMs),
    ...(dedicate && { dedicate: () => inTime(dedicate(), limitMs) }),
  }
}

/** A connection that comes too late is given back at once. */
function inTime<Late extends Connection>(coming: Promise<Late>, limitMs: number): Promise<Late> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      reject(timeout('no connection was to be had', limitMs))
    }, limitMs).unref()
    coming.then(
      (session) => {
        clearTimeout(timer)
        if (late) session.release()
        else resolve(limited(session, limitMs))
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

function limited<One extends Connection | Session<unknown>>(session: One, limitMs: number): One {
  function flight(calls: readonly Call[]): Promise<Flown> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        session.destroy()
        const error = timeout('the database did not answer', limitMs)
        // Which statement it hangs in cannot be told; the last is where an end is unclear.
        resolve({ failure: { index: calls.length - 1, error } })
      }, limitMs).unref()
      void session.flight(calls).then((flown) => {
        clearTimeout(timer)
        resolve(flown)
      })
    })
  }

  return { ...session, flight }
}
