/**
 * Remembers the bytes of a body as they pass to whoever reads it. Nothing is read and nothing is held back, so a parser, busboy or a pipe
 * that comes later finds the stream as it is: frameworks that parse every body by themselves keep none of its bytes, and the value of a
 * parser has lost the last digits of a long number (rule 15).
 */
import type { Readable } from 'node:stream'
import { createPatches } from './patches.js'

interface Seen {
  readonly chunks: Uint8Array[]
  readonly undo: () => void
  ended: boolean
}

const watched = new WeakMap<object, Seen>()

/** Watches a stream that nobody has read yet. Above `limitBytes` nothing is remembered. */
export function watchBody(stream: Readable, limitBytes: number): void {
  if (stream.readableDidRead || watched.has(stream)) return
  const patches = createPatches(stream)
  const seen: Seen = { chunks: [], undo: patches.undo, ended: false }
  const { emit } = stream
  let length = 0

  // Node emits `data` for whatever leaves the stream, also by `read()` and in loops.
  patches.replace('emit', (name: string, ...values: unknown[]) => {
    if (name === 'data') note(values[0])
    if (name === 'end') {
      seen.ended = true
      patches.undo()
    }
    return Reflect.apply(emit, stream, [name, ...values])
  })
  watched.set(stream, seen)

  function note(chunk: unknown): void {
    length += chunk instanceof Uint8Array ? chunk.length : Number.POSITIVE_INFINITY
    if (length > limitBytes) forget(stream)
    else seen.chunks.push(chunk as Uint8Array)
  }
}

/** The bytes of a stream that was watched from its first one and read to its last; ends the watch. */
export function seenBody(stream: Readable): Uint8Array | undefined {
  const seen = watched.get(stream)
  if (seen?.ended) return Buffer.concat(seen.chunks)
  forget(stream)
  return undefined
}

function forget(stream: Readable): void {
  watched.get(stream)?.undo()
  watched.delete(stream)
}
