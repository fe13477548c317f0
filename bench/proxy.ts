/**
 * A TCP proxy that counts what a client of PostgreSQL sends. A round trip is a turnaround: the client speaks after the server has. A
 * Sync is a message that makes the server answer and, outside a transaction block, commit.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface Traffic {
  readonly roundTrips: number
  readonly syncs: number
}

export interface CountingProxy {
  readonly port: number
  /** Since the proxy was opened. */
  traffic(): Traffic
  close(): Promise<void>
}

export async function openProxy(targetPort: number): Promise<CountingProxy> {
  let roundTrips = 0
  let syncs = 0
  const sockets = new Set<Socket>()

  function serve(client: Socket): void {
    const server = connect(targetPort, '127.0.0.1')
    const read = messageReader((type) => {
      // Q is a simple query, which brings its own Sync.
      if (type === 'S' || type === 'Q') syncs += 1
    })
    let serverSpoke = true
    client.on('data', (chunk) => {
      if (serverSpoke) roundTrips += 1
      serverSpoke = false
      read(chunk)
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      serverSpoke = true
      client.write(chunk)
    })
    for (const [own, other] of [
      [client, server],
      [server, client],
    ] as const) {
      own.setNoDelay(true)
      sockets.add(own)
      own.on('error', () => other.destroy())
      own.on('close', () => {
        sockets.delete(own)
        other.end()
      })
    }
  }

  const listener = createServer(serve)
  const port = await listening(listener)
  return {
    port,
    traffic: () => ({ roundTrips, syncs }),
    close: () =>
      new Promise((closed) => {
        listener.close(() => closed())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Finds the messages in the client's stream: a type byte and a length, but for the first, which has no type. */
function messageReader(onMessage: (type: string) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  let started = false
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const head = started ? 1 : 0
      if (rest.length < head + 4) return
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      if (started) onMessage(String.fromCharCode(rest[0] ?? 0))
      started = true
      rest = rest.subarray(length)
    }
  }
}
