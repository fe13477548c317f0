/**
 * The service that is measured end to end: one order route with and one without idempotency, otherwise the same. A process of its own,
 * so that the load it is given costs it nothing; any message is answered with the CPU time it has used.
 */
import express from 'express'
import pg from 'pg'
import { reply, retrysafe } from 'retrysafe'
import { idempotent, rawBody } from 'retrysafe/express'
import { postgres } from 'retrysafe/postgres'
import { placeBareOrder, placeOrder, scope } from './work.js'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.CONNECTIONS) })
pool.on('error', () => undefined)
const safe = retrysafe({ store: postgres(pool, { prepare: true }), mode: 'transaction', scope })

const app = express()
app.post('/bare', express.json(), async (_request, response) => {
  response.status(201).json(await placeBareOrder(pool))
})
app.post(
  '/safe',
  express.json({ verify: rawBody }),
  idempotent(safe, { mode: 'transaction' }, async ({ tx }) => reply(201, await placeOrder(tx))),
)

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuMs: (user + system) / 1000 })
})
// The bench has gone, or has told us to.
process.on('disconnect', () => process.exit())

const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address !== null ? address.port : 0 })
})
