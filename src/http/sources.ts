/**
 * The streams that are piped into a response.
 */
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'

export interface Sources {
  /** Stops what feeds the response. */
  unpipe(): void
  destroy(): void
  /** Ends the watch. */
  forget(): void
}

/** `closed` hears of each that closes, and whether it had come to its end. */
export function watchSources(res: ServerResponse, closed: (ended: boolean) => void): Sources {
  const sources = new Set<Readable>()
  res.on('pipe', watch)

  function watch(source: Readable): void {
    sources.add(source)
    source.once('close', sourceClosed)
  }

  function sourceClosed(this: Readable): void {
    sources.delete(this)
    closed(this.readableEnded)
  }

  function unpipe(): void {
    for (const source of sources) source.unpipe(res)
  }

  function destroy(): void {
    for (const source of sources) source.destroy()
  }

  function forget(): void {
    res.removeListener('pipe', watch)
    for (const source of sources) source.removeListener('close', sourceClosed)
    sources.clear()
  }

  return { unpipe, destroy, forget }
}
