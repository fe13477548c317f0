/**
 * Tells a throw from a chosen status, for handlers that exist: Express makes an answer of both.
 *
 * At the end of a route, an error handler is mounted by Express's public API the first time a request comes through. It sees every
 * error that the route's handlers throw or pass to `next`, notes it, and passes it on; a handler beside it sees who leaves the route
 * without an answer. Dispatch reads the route's live list, so the request under way meets them as well. Where the middleware is not in a route (`app.use`), or the route has an error handler of its own that may
 * answer first, nobody can see the difference.
 *
 * `res.sendFile`, `res.download` and `res.render` pass their errors to `req.next`, which is the router's and goes past the end of the
 * route: it is watched as well, as long as the handlers run.
 */
import type { IncomingMessage } from 'node:http'
import type { ExpressNext, ExpressRoute, RequestExtras } from './express-types.js'

/** Methods under which a route is watched. */
const watched = new WeakMap<ExpressRoute, Set<string>>()
const watchers = new WeakSet<object>()
const watches = new WeakMap<object, { threw(error: unknown): void; left(): void }>()

/**
 * What was thrown, as it may be given to `next`: nothing, and the words `route` and `router`, tell Express to go on, and the handlers
 * behind would run unprotected.
 */
export function reasonOf(thrown: unknown): unknown {
  if (thrown && !isWayOn(thrown)) return thrown
  return new Error('What idempotent() waited for failed without an error', { cause: thrown })
}

function isWayOn(reason: unknown): boolean {
  return reason === 'route' || reason === 'router'
}

/**
 * Calls back when the route of this request throws. The function that is returned ends that, and tells whether a throw would have been
 * seen.
 */
export function watchRoute(
  req: IncomingMessage & RequestExtras,
  middleware: unknown,
  threw: (error: unknown) => void,
): () => boolean {
  const { route } = req
  if (route === undefined || !isInside(route, middleware)) return () => false
  mount(route, (req.method ?? '').toLowerCase())
  let isLeft = false
  const left = () => {
    isLeft = true
  }
  watches.set(req, { threw, left })
  const unwatch = watchNext(req, threw, left)
  return () => {
    unwatch()
    // `next('route')` leaves without passing the end; the next route then stands here.
    return !isLeft && req.route === route
  }
}

function watchNext(req: RequestExtras, threw: (error: unknown) => void, left: () => void): () => void {
  const { next } = req
  if (next === undefined) return () => undefined
  const watching: ExpressNext = (reason) => {
    if (reason && !isWayOn(reason)) threw(reason)
    else left()
    next(reason)
  }
  req.next = watching
  // Whoever has replaced it since (a router inside, on its way) puts back by itself what it found.
  return () => {
    if (req.next === watching) req.next = next
  }
}

/** `req.route` stays set after a route was left, so it counts only if this middleware is in it. */
function isInside({ stack }: ExpressRoute, middleware: unknown): boolean {
  if (!stack?.some(({ handle }) => handle === middleware)) return false
  return !stack.some(
    ({ handle }) => typeof handle === 'function' && handle.length === 4 && !watchers.has(handle),
  )
}

function mount(route: ExpressRoute, method: string): void {
  const methods = watched.get(route) ?? new Set()
  if (methods.has(method)) return
  watched.set(route, methods.add(method))
  const onError = (error: unknown, req: IncomingMessage, _res: unknown, next: (error: unknown) => void) => {
    watches.get(req)?.threw(error)
    next(error)
  }
  const onEnd = (req: IncomingMessage, _res: unknown, next: () => void) => {
    watches.get(req)?.left()
    next()
  }
  watchers.add(onError)
  // Under the method alone where the route has one: `all` would have the route answer for every other method as well.
  const own = route.methods?.[method] === true ? Reflect.get(route, method) : undefined
  const add = typeof own === 'function' ? own : route.all
  add.call(route, onError)
  add.call(route, onEnd)
}
