/** The work that is measured: an order, with idempotency and without. */
import type pg from 'pg'
import type postgresJs from 'postgres'
import type { Retrysafe } from 'retrysafe'
import type { PgTx } from 'retrysafe/postgres'

/** 12 bytes, as a tenant's id may have. */
export const scope = 'tenant-00042'
export const order = { customerId: 'customer-000017', totalCents: 4200 }

/** A reply whose JSON has 250 bytes with an id of six digits. */
const note = 'x'.repeat(220)
export function replyOf(orderId: unknown) {
  return { orderId, note }
}

const insertOrder = {
  name: 'bench_insert_order',
  text: 'insert into bench.orders (customer_id, total_cents) values ($1, $2) returning id',
  values: [order.customerId, order.totalCents],
}
const begin = { name: 'bench_begin', text: 'begin' }
const commit = { name: 'bench_commit', text: 'commit' }

/** The same statement in every scenario; named, as a service that cares would have it. */
export async function placeOrder(tx: { query: pg.Pool['query'] }) {
  const { rows } = await tx.query<{ id: string }>(insertOrder)
  return replyOf(rows[0]?.id)
}

/** An order without idempotency: three round trips. */
export async function placeBareOrder(pool: pg.Pool) {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const reply = await placeOrder(client)
    await client.query(commit)
    client.release()
    return reply
  } catch (error) {
    client.release(true)
    throw error
  }
}

export function inTransaction(safe: Retrysafe<PgTx<pg.Pool>>, key: string, retry = false) {
  return safe.transaction({ scope, key, input: order, retry }, ({ tx }) => placeOrder(tx))
}

/** The same through postgres.js, whose statements are named by themselves. */
export async function placeOrderJs(tx: postgresJs.ISql) {
  const [row] = await tx`insert into bench.orders (customer_id, total_cents)
    values (${order.customerId}, ${order.totalCents}) returning id`
  return replyOf(row?.id)
}
