/**
 * Tells a throw from a chosen status, for handlers that exist: Express makes an answer of both.
 *
 * At the end of a route, an error handler is mounted by Express's public API the first time a request comes through. It sees every
 * error that the route's handlers throw or pass to `next`, notes it, and passes it on; a handler beside it sees who leaves the route
 * without an answer. Dispatch reads the route's live list, so the request under way meets them as well. Where the middleware is not in a route (`app.use`), or the route has an error handler of its own that may
 * answer first, nobody can see the difference.
 */
import type { IncomingMessage } from 'node:http'
import type { ExpressRoute, RequestExtras } from './express-types.js'

/** Methods under which a route is watched. */
const watched = new WeakMap<ExpressRoute, Set<string>>()
const watchers = new WeakSet<object>()
const watches = new WeakMap<object, { threw(error: unknown): void; left(): void }>()

/** Calls back when the route of this request throws. What it answers tells, up to then, whether a throw would have been seen. */
export function watchRoute(
  req: IncomingMessage & RequestExtras,
  middleware: unknown,
  threw: (error: unknown) => void,
): () => boolean {
  const { route } = req
  if (route === undefined || !isInside(route, middleware)) return () => false
  mount(route, (req.method ?? '').toLowerCase())
  let left = false
  watches.set(req, {
    threw,
    left: () => {
      left = true
    },
  })
  // `next('route')` leaves without passing the end; the next route then stands here.
  return () => !left && req.route === route
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
