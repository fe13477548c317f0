/** A client that sees what came over the wire: headers as they were sent, bytes, and whether the reply was complete. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http'

export interface Sending {
  readonly method?: string
  /** `null`: no key. A list: one header line for each. */
  readonly key?: string | null | readonly string[]
  readonly caller?: string
  /** Sent as JSON text. */
  readonly json?: unknown
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

export interface Got {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly replayed: boolean
}

/** Sends a request over a connection of its own. */
export function send(url: string, sending: Sending = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = start(url, sending)
    sent.on('error', reject)
    sent.on('response', (response) => read(response).then(resolve, reject))
  })
}

/** Starts a request; whoever gets it may cut it off. */
export function start(
  url: string,
  { method = 'POST', key = 'k1', caller = 'alice', ...how }: Sending,
): ClientRequest {
  const sent = request(url, { method, agent: false })
  sent.setHeader('authorization', caller)
  for (const line of typeof key === 'string' ? [key] : (key ?? [])) sent.appendHeader('idempotency-key', line)
  const body = how.json === undefined ? how.body : JSON.stringify(how.json)
  if (how.json !== undefined) sent.setHeader('content-type', 'application/json')
  for (const [name, value] of Object.entries(how.headers ?? {})) sent.setHeader(name, value)
  if (body !== undefined) sent.setHeader('content-length', Buffer.byteLength(body))
  sent.end(body)
  return sent
}

async function read(response: IncomingMessage): Promise<Got> {
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece as Buffer)
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(', ')]),
  )
  return {
    status: response.statusCode ?? 0,
    headers,
    body: Buffer.concat(pieces),
    replayed: headers['idempotent-replayed'] === 'true',
  }
}
