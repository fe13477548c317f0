/**
 * The scenarios. To add one, write it here with the id of its bare way in `against`: rounds, counts, table and `--only` follow.
 */
import type pg from 'pg'
import { textKey, uuidKey } from './keys.js'
import type { Scenario, Setting } from './scenario.js'

/** 12 bytes, as a tenant's id may have. */
export const scope = 'tenant-00042'
const order = { customerId: 'customer-000017', totalCents: 4200 }

/** A reply whose JSON has 250 bytes with an id of six digits. */
const note = 'x'.repeat(220)
function replyOf(orderId: unknown) {
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

function inTransaction({ safe }: Setting, key: string) {
  return safe.transaction({ scope, key, input: order }, ({ tx }) => placeOrder(tx))
}

/** One key after the other, so that two attempts of one key are never under way together and share nothing. */
function cycle(keys: readonly string[]): () => string {
  let next = 0
  return () => {
    const key = keys[next % keys.length]
    next += 1
    if (key === undefined) throw new Error('there are no finished keys')
    return key
  }
}

/** A replay that is none would measure something else. */
async function replayed(answer: Promise<{ replayed: boolean }>): Promise<void> {
  if (!(await answer).replayed) throw new Error('the work ran where a replay was to be measured')
}

const orders: readonly Scenario[] = [
  {
    id: 'bare',
    title: 'bare transaction',
    operation:
      ({ pool }) =>
      () =>
        placeBareOrder(pool),
  },
  {
    id: 'transaction',
    title: 'transaction mode',
    against: 'bare',
    keys: () => uuidKey,
    operation: (setting) => (key) => inTransaction(setting, key),
  },
  {
    id: 'transaction-text',
    title: 'transaction mode, text key',
    against: 'bare',
    keys: () => textKey,
    operation: (setting) => (key) => inTransaction(setting, key),
  },
  {
    id: 'lease-commit',
    title: 'lease mode, order in `commit`',
    against: 'bare',
    keys: () => uuidKey,
    operation:
      ({ safe }) =>
      (key) =>
        safe.run({ scope, key, input: order }, ({ commit }) => commit(placeOrder)),
  },
  {
    id: 'lease',
    title: 'lease mode, nothing written by the work',
    against: 'bare',
    keys: () => uuidKey,
    operation:
      ({ safe }) =>
      (key) =>
        safe.run({ scope, key, input: order }, () => replyOf('123456')),
  },
]

const select = 'select key, scope, reply from bench.replies where key = $1 and scope = $2'

function replays(id: string, title: string, keysOf: (setting: Setting) => readonly string[]): Scenario[] {
  const keys = (setting: Setting) => cycle(keysOf(setting))
  return [
    {
      id: `${id}-transaction`,
      title: `${title}, transaction mode`,
      against: 'select',
      keys,
      operation: (setting) => (key) => replayed(inTransaction(setting, key)),
    },
    {
      id: `${id}-lease`,
      title: `${title}, lease mode`,
      against: 'select',
      keys,
      operation:
        ({ safe }) =>
        (key) =>
          replayed(safe.run({ scope, key, input: order }, () => replyOf('not run'))),
    },
  ]
}

const reads: readonly Scenario[] = [
  {
    id: 'select',
    title: 'bare SELECT by primary key',
    keys: ({ finished }) => cycle(finished),
    operation:
      ({ pool }) =>
      (key) =>
        pool.query({ name: 'bench_select', text: select, values: [key, scope] }),
  },
  ...replays('replay', 'replay', ({ finished }) => finished),
  ...replays('hot', 'replay of one key', ({ finished }) => finished.slice(0, 1)),
]

export const scenarios: readonly Scenario[] = [...orders, ...reads]

/** Finishes the keys that are replayed, and gives the bare SELECT as many rows. */
export async function finishKeys(setting: Setting, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, uuidKey)
  const left = keys.values()
  const worker = async () => {
    for (const key of left) await inTransaction(setting, key)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  await setting.pool.query(
    'insert into bench.replies select key, $2, $3 from unnest($1::text[]) as finished (key)',
    [keys, scope, JSON.stringify(replyOf('123456'))],
  )
  return keys
}
