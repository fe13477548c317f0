/** Tells when a query of the work is over, and ends what would not end by itself: a cursor, a stream of COPY. */
import type { Query } from './types.js'

interface Watching {
  /** Called when the attempt settles. */
  readonly closers: Set<() => void>
  /** What closes a cursor. */
  readonly close: object
  isClosed(): boolean
  witness(error: unknown): void
}

/**
 * Resolves when the query has been answered. postgres.js calls `resolve` and `reject` of a query, and a cursor puts others in their
 * places for each step; so it is the places that are watched.
 */
export function watch(query: Query, { closers, close, isClosed, witness }: Watching): Promise<void> {
  return new Promise((finish) => {
    let closeCursor: (value: object) => void = () => undefined
    const closed = new Promise<object>((resolve) => {
      closeCursor = resolve
    })
    let stream: Stream | undefined
    closers.add(end)
    around(query, 'resolve', (pass) => (value: unknown) => {
      // A COPY is told twice: when its stream opens, and when it is over.
      if (isStream(value)) stream = value
      else over()
      return pass(value)
    })
    around(query, 'reject', (pass) => (error: unknown) => {
      over()
      witness(error)
      return pass(error)
    })
    around(query, 'cursorFn', (pass) =>
      pass === undefined
        ? undefined
        : (rows: unknown) => (isClosed() ? close : Promise.race([pass(rows), closed])),
    )

    function end(): void {
      closeCursor(close)
      if (stream !== undefined) endStream(stream)
    }

    function over(): void {
      closers.delete(end)
      // A reader too slow for the last piece leaves the socket paused, and nobody would resume it.
      stream?._read?.(0)
      finish()
    }
  })
}

/** Gives out a function around whatever stands in this place. */
function around<Place extends 'resolve' | 'reject' | 'cursorFn'>(
  query: Query,
  place: Place,
  wrap: (inner: Query[Place]) => Query[Place],
): void {
  let inner = query[place]
  Object.defineProperty(query, place, {
    configurable: true,
    get: () => wrap(inner),
    set: (value: Query[Place]) => {
      inner = value
    },
  })
}

interface Stream {
  pipe(target: unknown): unknown
  resume?(): unknown
  _read?(size: number): void
  destroy(): unknown
}

function isStream(value: unknown): value is Stream {
  return typeof value === 'object' && value !== null && 'pipe' in value && typeof value.pipe === 'function'
}

/** What the server sends must be read to its end, or the connection stands still; what it waits for is broken off. */
function endStream(stream: Stream): void {
  if (stream.resume === undefined) stream.destroy()
  else stream.resume()
}
