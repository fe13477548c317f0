/**
 * Nobody waits for ever: a server that accepts connections and never answers is as good as down (rule 17).
 *
 * Every statement of ours, and every connection asked of a pool, has a limit. A connection that did not answer in time is destroyed: what it was asked may still be
 * carried out, so behind a COMMIT that is an unclear end (rule 10), and elsewhere it rolls back with its connection. The work's own statements are not ours
 * to limit; they have `workTimeoutMs`.
 */
import type { Answer, Connection, Driver } from './driver.js'

const timedOut = Symbol('retrysafe.timedOut')

/** Whether an error is ours for an answer that did not come in time. */
export function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && timedOut in error
}

/** Puts the limit around a driver. */
export function patient<Tx>(driver: Driver<Tx>, limitMs: number): Driver<Tx> {
  const { dedicate } = driver
  return {
    ...driver,
    acquire: async () => limited(await connected(driver.acquire(), limitMs), limitMs),
    adopt: (tx) => limited(driver.adopt(tx), limitMs),
    ...(dedicate && { dedicate: async () => limited(await connected(dedicate(), limitMs), limitMs) }),
  }
}

/** A connection that comes too late is given back at once. */
function connected<One extends Connection>(coming: Promise<One>, limitMs: number): Promise<One> {
  let late = false
  coming.then(
    (connection) => {
      if (late) connection.release()
    },
    () => undefined,
  )
  return inTime(coming, limitMs, 'no connection was to be had', () => {
    late = true
  })
}

function limited<One extends Connection>(connection: One, limitMs: number): One {
  function run(text: string): Promise<Answer> {
    return inTime(connection.run(text), limitMs, 'the database did not answer', connection.destroy)
  }
  return { ...connection, run }
}

function inTime<T>(coming: Promise<T>, limitMs: number, what: string, onLate: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      onLate()
      reject(Object.assign(new Error(`${what} within ${limitMs} ms`), { [timedOut]: true }))
    }, limitMs).unref()
    coming.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
