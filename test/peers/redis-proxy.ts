/** A TCP proxy in front of a Redis server that can lose one answer, or stand still. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface RedisProxy {
  readonly port: number
  /**
   * The next command that has the text in it reaches the server; its answer does not come back, because the connection is cut. Resolves when
   * that has happened.
   */
  loseAnswerTo(text: string): Promise<void>
  /** How often the text has been sent by clients so far. */
  sent(text: string): number
  /** From now on nothing passes, in either direction, though connections stay and are accepted. */
  standStill(): void
  /** Everything passes again, what was kept first. */
  goOn(): void
  close(): void
}

export async function openRedisProxy(target: number): Promise<RedisProxy> {
  const sockets = new Set<Socket>()
  let heard = ''
  let still = false
  let wanted: { readonly text: string; readonly done: () => void } | undefined

  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    let doomed: (() => void) | undefined
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
      if (still) socket.pause()
    }
    near.on('data', (data) => {
      const text = data.toString('latin1')
      heard += text
      if (wanted !== undefined && text.includes(wanted.text)) {
        doomed = wanted.done
        wanted = undefined
      }
      far.write(data)
    })
    far.on('data', (data) => {
      if (doomed === undefined) return void near.write(data)
      near.destroy()
      doomed()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    loseAnswerTo: (text) =>
      new Promise((done) => {
        wanted = { text, done }
      }),
    sent: (text) => heard.split(text).length - 1,
    standStill: () => {
      still = true
      for (const socket of sockets) socket.pause()
    },
    goOn: () => {
      still = false
      for (const socket of sockets) socket.resume()
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
