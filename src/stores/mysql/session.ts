/** A session over a connection of either client: what they differ in is how a statement is sent and what the work is given. */
import type { Answer, Guarded, Session } from './driver.js'
import { guardTx, type Inside } from './guard.js'

export interface Emitter {
  on(event: 'error' | 'end', listener: (error?: unknown) => void): unknown
  removeListener(event: 'error' | 'end', listener: (error?: unknown) => void): unknown
}

export interface Wiring {
  readonly inside: Inside
  readonly events: Emitter
  /** What has `query` and `execute` for the work. */
  readonly writer: object
  readonly style: 'callback' | 'promise'
  run(text: string): Promise<Answer>
  release(): void
  destroy(): void
}

export function sessionOver<Tx>(wiring: Wiring): Session<Tx> {
  const { inside, events, writer, style } = wiring
  let cause: unknown
  let given = false
  let destroyed = false
  const listeners: ((cause: unknown) => void)[] = []
  const onEnd = (error?: unknown) => {
    if (cause !== undefined) return
    cause = error ?? new Error('the server has closed the connection')
    for (const listener of listeners.splice(0)) listener(cause)
  }
  // Without a listener a server that goes away would end the process (rule 21).
  events.on('error', onEnd)
  events.on('end', onEnd)
  return {
    run: (text) => inside.send(() => wiring.run(text)),
    guard: (): Guarded<Tx> => guardTx<Tx>(writer, style, inside),
    lost: () => cause,
    onLost: (listener) => {
      if (cause === undefined) listeners.push(listener)
      else listener(cause)
    },
    release,
    destroy,
  }

  function release(): void {
    if (given) return
    given = true
    listeners.length = 0
    events.removeListener('error', onEnd)
    events.removeListener('end', onEnd)
    wiring.release()
  }

  /**
   * The listeners stay: a socket may report its end after it was given up. Also behind `release`, for what was sent with it: whoever has the connection by
   * then waits behind that.
   */
  function destroy(): void {
    if (destroyed) return
    destroyed = true
    given = true
    listeners.length = 0
    wiring.destroy()
  }
}
