/**
 * Tells a throw from a chosen status, for handlers that exist: Express makes an answer of both.
 *
 * At the end of a route, one error handler is mounted by Express's public API the first time a request comes through. It sees every
 * error that the route's handlers throw or pass to `next`, notes it, and passes it on. Dispatch reads the route's live list, so the
 * request under way meets it as well. Where the middleware is not in a route (`app.use`), or the route has an error handler of its own that may
 * answer first, nobody can see the difference.
 */
import type { IncomingMessage } from 'node:http'
import type { ExpressRoute, RequestExtras } from './express-types.js'

/** Route and method where the error handler is mounted. */
const watched = new WeakMap<ExpressRoute, Set<string>>()
const watchers = new WeakSet<object>()
const listeners = new WeakMap<object, (error: unknown) => void>()

/** Calls back when the route of this request throws, if that can be seen; answers whether it can. */
export function onRouteError(
  req: IncomingMessage & RequestExtras,
  middleware: unknown,
  listener: (error: unknown) => void,
): boolean {
  const { route } = req
  if (route === undefined || !isInside(route, middleware)) return false
  mount(route, (req.method ?? '').toLowerCase())
  listeners.set(req, listener)
  return true
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
  const watcher = (error: unknown, req: IncomingMessage, _res: unknown, next: (error: unknown) => void) => {
    listeners.get(req)?.(error)
    next(error)
  }
  watchers.add(watcher)
  // Under the method alone where the route has one: `all` would have the route answer for every other method as well.
  const own = route.methods?.[method] === true ? Reflect.get(route, method) : undefined
  if (typeof own === 'function') own.call(route, watcher)
  else route.all(watcher)
}
