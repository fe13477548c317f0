/**
 * Named moments between two durable effects, for tests that kill, pause or break a process there.
 *
 * Nothing happens unless somebody has put a function at `globalThis[Symbol.for('retrysafe.failpoints')]`; it is called with the name of
 * each moment that is reached, may return a promise, and what it throws is thrown there. Until then a moment costs one property read and no
 * turn of the event loop, which is why it is written as `if (armed()) await hit('…')`. A test reads the names from the source: one
 * that no case drives fails the build.
 */
const handler = Symbol.for('retrysafe.failpoints')

const place = globalThis as { [handler]?: (name: string) => unknown }

/** Whether somebody waits for moments. */
export function armed(): boolean {
  return place[handler] !== undefined
}

/** Tells that a moment is reached. */
export async function hit(name: string): Promise<void> {
  await place[handler]?.(name)
}
