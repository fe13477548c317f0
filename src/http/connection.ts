/**
 * Hears when this process itself ends a connection, which is not a client that hangs up.
 *
 * Before the answer it is the handler's way to give up. After it, it is what Express does with an error that comes when headers are sent:
 * without us the answer has left by then, so with us the end waits until it has.
 *
 * Not ours to judge: an end with an error (a reset, a request that took too long to arrive), and one after either side has said its last,
 * which Node brings about itself.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { carrierOf, isEnding } from './http2.js'
import { createPatches } from './patches.js'

/** Called before `by` ends the connection; `wait` keeps it open until the watch is over. */
export type Ending = (by: 'request' | 'socket') => 'go' | 'wait'

interface Watched {
  readonly endings: Set<Ending>
  readonly undo: () => void
  /** An end that was told to wait. */
  owed: boolean
}

/** Pipelined requests share their connection. */
const connections = new WeakMap<Socket, Watched>()

/** Watches; what is returned ends that, and tells whether the connection is to be ended now. */
export function watchConnection(req: IncomingMessage, ending: Ending): () => boolean {
  const socket = carrierOf(req)
  const watched = connections.get(socket) ?? watch(socket)
  watched.endings.add(ending)
  const patches = createPatches(req)
  const { destroy } = req
  patches.replace('destroy', (error?: Error) => {
    // Once it is read to the end, it takes no connection with it.
    if (!socket.destroyed && !req.readableEnded) ending('request')
    return destroy.call(req, error)
  })
  return () => {
    patches.undo()
    watched.endings.delete(ending)
    if (watched.endings.size > 0) return false
    watched.undo()
    connections.delete(socket)
    return watched.owed
  }
}

function watch(socket: Socket): Watched {
  const patches = createPatches(socket)
  const watched: Watched = { endings: new Set(), undo: patches.undo, owed: false }
  const { destroy } = socket
  patches.replace('destroy', (error?: Error) => {
    const isNodes = error || socket.destroyed || isEnding(socket)
    if (!isNodes && [...watched.endings].map((ending) => ending('socket')).includes('wait')) {
      watched.owed = true
      return socket
    }
    return destroy.call(socket, error)
  })
  connections.set(socket, watched)
  return watched
}
