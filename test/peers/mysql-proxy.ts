/** A TCP proxy before MariaDB that loses one statement, or its answer, and the connection with it, or lets it fall silent. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface MysqlProxy {
  readonly port: number
  /** The next statement of this text ends its connection before it reaches the server, or before its answer comes back. */
  cut(text: string, when: 'before' | 'after'): void
  /** The next statement that begins so gets no answer, nor does what comes behind it on its connection, which stays open. */
  silence(text: string): void
  /** How many were cut. */
  cuts(): number
  close(): Promise<void>
}

export async function mysqlProxy(target: number): Promise<MysqlProxy> {
  const sockets = new Set<Socket>()
  let armed: { text: string; when: 'before' | 'after' } | undefined
  let silenced: string | undefined
  let cuts = 0
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    let deaf = false
    let silent = false
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        // What it was sent is still carried out: the server is left to read it.
        upstream.end()
      })
    }
    client.on('data', (data) => {
      if (silenced !== undefined && statementIn(data)?.startsWith(silenced)) {
        silenced = undefined
        cuts += 1
        silent = true
      }
      if (silent) return
      if (armed === undefined || statementIn(data) !== armed.text) return upstream.write(data)
      const { when } = armed
      armed = undefined
      cuts += 1
      deaf = true
      if (when === 'before') client.destroy()
      else upstream.write(data)
    })
    upstream.on('data', (data) => (deaf ? client.destroy() : client.write(data)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cut: (text, when) => {
      armed = { text, when }
    },
    silence: (text) => {
      silenced = text
    },
    cuts: () => cuts,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A statement is a packet of its own: three bytes of length, its number, the command 3, and the text. */
function statementIn(data: Buffer): string | undefined {
  return data.length > 5 && data[4] === 3 ? data.subarray(5).toString('latin1') : undefined
}
