/**
 * One keep-alive connection that sends a request and reads its reply. Written down to the socket because it shares the cores with
 * what is measured: an HTTP client would spend more on a request than the service does.
 */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface Caller {
  /** `head` is the path, the version and any further header lines; answers with the status once the whole reply is there. */
  post(head: string, body: string): Promise<number>
  close(): void
}

export async function openCaller(port: number): Promise<Caller> {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  await once(socket, 'connect')
  let received = ''
  let resolve: (status: number) => void = () => undefined
  let reject: (error: Error) => void = () => undefined
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd === -1) return
    const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, headEnd))?.[1]
    if (length === undefined) return reject(new Error('a reply without Content-Length'))
    if (received.length < headEnd + 4 + Number(length)) return
    const status = Number(received.slice(9, 12))
    received = ''
    resolve(status)
  })
  socket.on('error', (error) => reject(error))
  socket.on('close', () => reject(new Error('the service closed a connection')))

  function post(head: string, body: string): Promise<number> {
    return new Promise((whenAnswered, whenBroken) => {
      resolve = whenAnswered
      reject = whenBroken
      socket.write(
        `POST ${head}\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    })
  }

  return { post, close: () => socket.destroy() }
}
