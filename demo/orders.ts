/** An order of the demo: what makes one valid, and its few statements. */

/** What a caller wants. */
export interface OrderRequest {
  readonly customerId: string
  /** 1 to 2^53 - 1. */
  readonly totalCents: number
}

/** What was placed. */
export interface Order extends OrderRequest {
  readonly orderId: string
  /** ISO 8601, UTC. */
  readonly createdAt: string
}

/** What is wrong, by field. */
export type OrderProblems = Partial<Record<keyof OrderRequest, string>>

export type CheckedOrder = { readonly order: OrderRequest } | { readonly problems: OrderProblems }

/** A pool, a client or the `tx` of an attempt. */
export interface Database {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

interface OrderRow {
  readonly id: string
  readonly customer_id: string
  /** A bigint, which the driver gives as text. */
  readonly total_cents: string
  readonly created_at: Date
}

const columns = 'id, customer_id, total_cents, created_at'

/** How many orders a list shows; its count is that of all. */
const listLimit = 100

function toOrder(row: unknown): Order {
  const { id, customer_id, total_cents, created_at } = row as OrderRow
  return {
    orderId: id,
    customerId: customer_id,
    totalCents: Number(total_cents),
    createdAt: created_at.toISOString(),
  }
}

function isCustomerId(value: unknown): value is string {
  // PostgreSQL stores neither a NUL nor half of a surrogate pair, and no other control character names a customer.
  return typeof value === 'string' && /^[^\p{Cc}\p{Cs}]{1,200}$/u.test(value) && value.trim() !== ''
}

function checkOrder(customerId: unknown, totalCents: unknown): CheckedOrder {
  const problems: OrderProblems = {}
  if (!isCustomerId(customerId)) problems.customerId = 'Give the customer: 1 to 200 characters.'
  if (!Number.isSafeInteger(totalCents) || Number(totalCents) < 1) {
    problems.totalCents = 'Give the total as a whole number of cents, 1 or more.'
  }
  if (Object.keys(problems).length > 0) return { problems }
  return { order: { customerId: String(customerId), totalCents: Number(totalCents) } }
}

/** Checks a JSON body: numbers are numbers there. */
export function orderFromJson(body: unknown): CheckedOrder {
  const { customerId, totalCents } = (typeof body === 'object' && body !== null ? body : {}) as Record<
    string,
    unknown
  >
  return checkOrder(customerId, totalCents)
}

/** Checks the fields of the form, where everything is text. */
export function orderFromForm(fields: URLSearchParams | Readonly<Record<string, unknown>>): CheckedOrder {
  const field = (name: string) => (fields instanceof URLSearchParams ? fields.get(name) : fields[name])
  const customerId = field('customerId')
  const totalCents = field('totalCents')
  const isDigits = typeof totalCents === 'string' && /^\d{1,16}$/.test(totalCents.trim())
  return checkOrder(
    typeof customerId === 'string' ? customerId.trim() : undefined,
    isDigits ? Number(totalCents) : undefined,
  )
}

/** Writes an order; run it through the `tx` of the attempt. */
export async function placeOrder(tx: Database, { customerId, totalCents }: OrderRequest): Promise<Order> {
  const { rows } = await tx.query(
    `insert into demo.orders (customer_id, total_cents) values ($1, $2) returning ${columns}`,
    [customerId, totalCents],
  )
  return toOrder(rows[0])
}

/** One order; `undefined` if there is none, or the text cannot be an order's id. */
export async function findOrder(database: Database, orderId: string): Promise<Order | undefined> {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(orderId)) return undefined
  const { rows } = await database.query(`select ${columns} from demo.orders where id = $1`, [orderId])
  return rows.length === 0 ? undefined : toOrder(rows[0])
}

/** The newest orders, of one customer or of all, and how many there are. */
export async function listOrders(
  database: Database,
  customerId?: string,
): Promise<{ count: number; orders: Order[] }> {
  // A NUL is in no stored id, and PostgreSQL would refuse to compare it.
  if (customerId?.includes('\0')) return { count: 0, orders: [] }
  const condition = customerId === undefined ? '' : 'where customer_id = $1'
  const values = customerId === undefined ? [] : [customerId]
  const { rows } = await database.query(
    `select ${columns}, (select count(*) from demo.orders ${condition})::integer as count
     from demo.orders ${condition} order by created_at desc limit ${listLimit}`,
    values,
  )
  const [first] = rows as { count: number }[]
  return { count: first?.count ?? 0, orders: rows.map(toOrder) }
}
