/** A TCP proxy in front of a server: counts what the client sends, and once told to, keeps back what the server answers. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Proxy {
  /** The connection string with the proxy in the place of the server. */
  readonly connectionString: string
  /** Times the client has spoken after the server: round trips so far. */
  turns(): number
  /** From now on the server's first answer closes the client's connection unread. */
  swallow(): void
  close(): void
}

export async function openProxy(connectionString: string): Promise<Proxy> {
  const url = new URL(connectionString)
  const target = { port: Number(url.port), host: url.hostname }
  const sockets = new Set<Socket>()
  let deaf = false
  let turns = 0
  const server = createServer((near) => {
    const far = connect(target)
    let heard = true
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
    near.on('data', (data) => {
      if (heard) turns += 1
      heard = false
      far.write(data)
    })
    near.on('close', () => far.destroy())
    far.on('data', (data) => {
      heard = true
      if (deaf) near.destroy()
      else near.write(data)
    })
    far.on('close', () => near.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url.port = String((server.address() as AddressInfo).port)
  return {
    connectionString: url.href,
    turns: () => turns,
    swallow: () => {
      deaf = true
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
