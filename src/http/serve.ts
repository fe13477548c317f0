/**
 * Serves a `(Request) => Response` from Node: the policy pages, the dashboard.
 */
import type { ServerResponse } from 'node:http'
import { readExpressBody } from './express-body.js'
import { reasonOf } from './express-errors.js'
import type { ExpressMiddleware, ExpressRequest } from './express-types.js'

type FetchHandler = (request: Request) => Response | Promise<Response>

/** The largest body that is passed on, in bytes: these pages take short forms. */
const limitBytes = 1024 * 1024

/**
 * Mounts a fetch-style handler in Express: `app.use('/.well-known/retrysafe', serve(policy(safe)))`. What it throws goes to Express's
 * error handler.
 */
export function serve(handler: FetchHandler): ExpressMiddleware<ExpressRequest> {
  return (req, res, next) => {
    requestOf(req)
      .then(handler)
      .then((response) => send(res, response, req.method === 'HEAD'))
      .catch((error: unknown) => next(reasonOf(error)))
  }
}

async function requestOf(req: ExpressRequest): Promise<Request> {
  const { method = 'GET', originalUrl, rawHeaders, socket } = req
  const headers = new Headers()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    // HTTP/2 has method, path and host among its headers (`:method`): no name that a Headers object takes.
    if (!name.startsWith(':')) headers.append(name, rawHeaders[index + 1] ?? '')
  }
  const scheme = 'encrypted' in socket ? 'https' : 'http'
  // The path is the client's, also where it looks like an address of its own (`//evil`).
  const origin = `${scheme}://${req.headers.host ?? req.headers[':authority'] ?? 'localhost'}`
  const url = new URL(URL.canParse(origin) ? origin : `${scheme}://localhost`)
  const [path = '', ...query] = originalUrl.split('?')
  url.pathname = path
  url.search = query.join('?')
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers })
  const content = await readExpressBody(req, limitBytes)
  const { bytes, parsed } = content ?? {}
  return new Request(url, {
    method,
    headers,
    body: bytes ?? (parsed === undefined ? null : JSON.stringify(parsed)),
  })
}

async function send(res: ServerResponse, response: Response, headOnly: boolean): Promise<void> {
  res.statusCode = response.status
  for (const [name, value] of response.headers) if (name !== 'set-cookie') res.setHeader(name, value)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) res.setHeader('set-cookie', cookies)
  if (response.body === null || headOnly) {
    res.end()
    return
  }
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done || res.destroyed) break
    if (!res.write(value)) await writable(res)
  }
  if (res.destroyed) await reader.cancel()
  else res.end()
}

function writable(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      res.removeListener('drain', go)
      res.removeListener('close', go)
      resolve()
    }
    res.on('drain', go)
    res.on('close', go)
  })
}
