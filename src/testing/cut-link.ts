/** One connection through the cutting proxy: what the client sends is let through, held or cut message by message. */
import type { Socket } from 'node:net'
import { type ClientMessage, messageReader } from './postgres-messages.js'

/** What happens at a message. `Before`: it has not reached the server; `After`: it has, and no answer comes back. */
export type CutAct = 'cutBefore' | 'cutAfter' | 'holdBefore' | 'holdAfter'

export interface Link {
  /** Lets go what is held, or resets both sides. */
  release(how: 'go' | 'cut'): void
  cut(): void
  pause(): void
  resume(): void
  /** Resolves once the server has closed its side: whatever it was told by then has been done, and the rest undone. */
  readonly over: Promise<void>
  /** Whether the client's side is closed. */
  isGone(): boolean
}

export function openLink(
  client: Socket,
  server: Socket,
  decide: (message: ClientMessage, link: Link) => CutAct | undefined,
): Link {
  const read = messageReader()
  /** Undefined: not held. */
  let forServer: Buffer[] | undefined
  let forClient: Buffer[] | undefined
  let gone = false
  let cutOff = false
  let serverGone = false
  const over = new Promise<void>((resolve) => {
    server.once('close', resolve)
  })
  const link: Link = { release, cut, pause, resume, over, isGone: () => gone }
  for (const socket of [client, server]) {
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
  }
  client.on('data', hear)
  client.on('close', () => {
    gone = true
    // What is held is still on its way: it arrives late, although nobody waits for it any more.
    if (forServer === undefined) server.end()
  })
  server.on('data', (chunk) => {
    if (forClient === undefined) client.write(chunk)
    else forClient.push(chunk)
  })
  server.on('close', () => {
    serverGone = true
    if (forClient === undefined) client.end()
  })
  return link

  function hear(chunk: Buffer): void {
    let ready: Buffer[] = []
    for (const message of read(chunk)) {
      if (cutOff) return
      const act = decide(message, link)
      const after = act === 'cutAfter' || act === 'holdAfter'
      if (act === undefined || after) (forServer ?? ready).push(message.bytes)
      if (act === undefined) continue
      send(ready)
      ready = []
      if (act === 'cutBefore' || act === 'cutAfter') cut()
      else {
        forServer ??= after ? [] : [message.bytes]
        if (after) forClient ??= []
      }
    }
    send(ready)
  }

  function send(ready: readonly Buffer[]): void {
    if (ready.length > 0) server.write(Buffer.concat(ready))
  }

  function release(how: 'go' | 'cut'): void {
    const [late, answers] = [forServer, forClient]
    if (late === undefined) return
    forServer = undefined
    forClient = undefined
    if (how === 'cut') {
      cut()
      return
    }
    send(late)
    for (const answer of answers ?? []) client.write(answer)
    if (serverGone) client.end()
    else if (gone) server.end()
  }

  /** The client hears a reset; the server reads all that was let through, and then the end. */
  function cut(): void {
    cutOff = true
    client.resetAndDestroy()
    server.end()
  }

  function pause(): void {
    client.pause()
    server.pause()
  }

  function resume(): void {
    client.resume()
    server.resume()
  }
}
