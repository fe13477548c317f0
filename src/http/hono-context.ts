/**
 * A Hono context's answer: taken from it, and put into it beside the headers that others have set.
 */
import type { Answered } from './fetch-carry.js'
import type { HonoContext } from './hono-types.js'

/** What `@hono/node-server` is told with, when a handler has written to the Node response by itself. */
const alreadySent = 'x-hono-already-sent'

/** The answer that handlers have left in the context, and the error that it was made of. */
export function answerIn(c: HonoContext): Answered {
  // As Hono itself says it; looking at `c.res` would make an empty 200 of nothing.
  if (!c.finalized) throw new Error('No handler has returned a response, or one did not await next()')
  if (c.res.headers.has(alreadySent)) {
    throw new Error(
      'A handler behind idempotent() must return its response: what it writes itself is not kept',
    )
  }
  return { answer: c.res, error: c.error }
}

/** The headers that an answer made now would get, as they are at this moment. */
export function headersOf(c: HonoContext): Headers {
  return new Headers(c.newResponse(null).headers)
}

/** Puts a response in the place of whatever is there; of `others`, headers that it does not name stay, and all cookies. */
export function putResponse(c: HonoContext, response: Response, others: Headers = new Headers()): void {
  const named = new Set(response.headers.keys())
  for (const [name, value] of others) {
    if (name === 'set-cookie' || !named.has(name)) response.headers.append(name, value)
  }
  // Taken away first: Hono joins the headers of the one before to those of the next.
  c.res = undefined
  c.res = response
}

/**
 * Answers for a handler that is still at work: what it says or throws later would else become the answer, while middleware further out
 * takes its time. What such middleware adds to this response is lost with it.
 */
export function fixResponse(c: HonoContext, response: Response, others: Headers): void {
  putResponse(c, response, others)
  // Copies, because whoever wants to change the response may read its body.
  Object.defineProperty(c, 'res', { get: () => response.clone(), set: () => undefined, configurable: true })
}
