/**
 * A front before a server of HTTP/2, for clients of HTTP/1: what the HTTP suite sends goes on as it is, what comes back as well, and an end
 * on one side is one on the other.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'

/** Headers that belong to a connection of HTTP/1. */
const ofConnection = new Set(['connection', 'host', 'keep-alive', 'transfer-encoding'])

export interface Front {
  readonly url: string
  close(): Promise<void>
}

export async function http2Front(target: string): Promise<Front> {
  const session = connect(target)
  session.on('error', () => undefined)
  const server = createServer((req, res) => {
    const stream = session.request(headersOf(req), { endStream: false })
    req.pipe(stream)
    // A client that leaves cancels its stream; a stream that breaks leaves its client without the end.
    res.on('close', () => {
      if (!res.writableFinished) stream.close(constants.NGHTTP2_CANCEL)
    })
    stream.on('error', () => res.destroy())
    stream.on('response', ({ ':status': status, ...headers }) => {
      res.writeHead(Number(status), headers)
      res.flushHeaders()
      stream.pipe(res)
    })
    stream.on('close', () => {
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) res.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await ended(session)
    },
  }
}

async function ended(session: ClientHttp2Session): Promise<void> {
  if (session.destroyed) return
  session.destroy()
  await once(session, 'close')
}

function headersOf(req: IncomingMessage): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = {}
  for (let index = 0; index + 1 < req.rawHeaders.length; index += 2) {
    const name = (req.rawHeaders[index] ?? '').toLowerCase()
    const value = req.rawHeaders[index + 1] ?? ''
    if (ofConnection.has(name)) continue
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return { ':method': req.method, ':path': req.url, ...headers }
}
