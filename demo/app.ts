/**
 * The demo service: orders that cannot be placed twice, by API and by form.
 *
 * Order of middleware: who is it, read the body (bytes kept), is it valid, then ours. So a stranger sees no replay, and a refused
 * body costs no key.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import type pg from 'pg'
import { policy, type Retrysafe, reply } from 'retrysafe'
import { idempotent, rawBody, serve } from 'retrysafe/express'
import type { PgTx } from 'retrysafe/postgres'
import { orderFormScript } from './order-form-script.js'
import {
  findOrder,
  listOrders,
  type OrderRequest,
  orderFromForm,
  orderFromJson,
  placeOrder,
} from './orders.js'
import { keyField, type OrderPage, orderLocation, orderPage, orderPageHeaders } from './orders-page.js'

export interface AppParts {
  readonly safe: Retrysafe<PgTx<pg.Pool>>
  readonly pool: pg.Pool
  /** `http://localhost:3000`: from the port, not from what a request claims. */
  readonly origin: string
}

/** How long the form waits for a first click that is still under way: a browser shows the answer to the last. */
const formWaitMs = 10_000

const placed = new WeakMap<Request, OrderRequest>()

/** The caller is the bearer token's text, or `anonymous`. A real service would look the token up. */
export function callerOf(request: Request): string {
  return /^bearer ([\x21-\x7e]{1,255})$/i.exec(request.get('authorization') ?? '')?.[1] ?? 'anonymous'
}

function authenticate(request: Request, response: Response, next: NextFunction): void {
  const token = request.get('authorization')
  if (token === undefined || callerOf(request) !== 'anonymous' || /^bearer anonymous$/i.test(token)) {
    next()
    return
  }
  response
    .status(401)
    .set('www-authenticate', 'Bearer')
    .json({ error: 'Authorization must be "Bearer <token>"' })
}

function isForm(request: Request): boolean {
  return request.is('application/x-www-form-urlencoded') !== false
}

function orderOf(request: Request): OrderRequest {
  const order = placed.get(request)
  if (order === undefined) throw new Error('the order was not checked')
  return order
}

export function createApp({ safe, pool, origin }: AppParts): Express {
  const app = express()
  app.disable('x-powered-by')
  app.set('query parser', 'simple')

  app.get('/health', async (_request, response) => {
    await pool.query('select 1')
    response.json({ status: 'ok' })
  })
  app.use('/.well-known/retrysafe', serve(policy(safe)))
  app.get('/order-form.js', (_request, response) => {
    response.type('text/javascript').set('cache-control', 'no-cache').send(orderFormScript)
  })

  app.get('/', async (request, response) => {
    const wanted = typeof request.query.order === 'string' ? request.query.order : undefined
    const order = wanted === undefined ? undefined : await findOrder(pool, wanted)
    const notice = wanted !== undefined && order === undefined ? { notice: 'There is no such order.' } : {}
    show(response, 200, { order, ...notice })
  })

  app.get('/orders', async (request, response) => {
    const { customerId } = request.query
    response.json(await listOrders(pool, typeof customerId === 'string' ? customerId : undefined))
  })

  const byForm = idempotent(
    safe,
    { formField: keyField, whileRunning: { waitMs: formWaitMs } },
    async ({ req, tx }) => {
      const { orderId } = await placeOrder(tx, orderOf(req as Request))
      return reply(303, undefined, { location: orderLocation(orderId) })
    },
  )
  const byApi = idempotent(safe, {}, async ({ req, tx }) => {
    const { orderId } = await placeOrder(tx, orderOf(req as Request))
    return reply(201, { orderId })
  })

  app.post(
    '/orders',
    authenticate,
    express.json({ verify: rawBody }),
    express.urlencoded({ extended: false, verify: rawBody }),
    validate,
    (request, response, next) => (isForm(request) ? byForm : byApi)(request, response, next),
  )

  function validate(request: Request, response: Response, next: NextFunction): void {
    const checked = isForm(request) ? orderFromForm(request.body ?? {}) : orderFromJson(request.body)
    if ('order' in checked) {
      placed.set(request, checked.order)
      next()
      return
    }
    if (!isForm(request)) {
      response.status(400).json({ error: 'The order is not valid', problems: checked.problems })
      return
    }
    const field = (name: string) => String(request.body?.[name] ?? '')
    const values = { customerId: field('customerId'), totalCents: field('totalCents') }
    const kept = field(keyField) === '' ? {} : { idempotencyKey: field(keyField) }
    show(response, 400, { values, problems: checked.problems, notice: 'The order was not placed.', ...kept })
  }

  function show(response: Response, status: number, parts: Partial<OrderPage>): void {
    const nonce = randomBytes(16).toString('base64')
    const page = { nonce, origin, idempotencyKey: randomUUID(), exampleKey: randomUUID(), ...parts }
    response.status(status).set(orderPageHeaders(nonce)).send(orderPage(page))
  }

  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error)
    const { status } = error as { status?: unknown }
    const known = typeof status === 'number' && status >= 400 && status < 500
    if (!known) console.error(error)
    response
      .status(known ? status : 500)
      .json({ error: known ? 'The request cannot be read' : 'Something went wrong' })
  })
  return app
}
