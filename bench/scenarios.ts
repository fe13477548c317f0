/**
 * The scenarios. To add one, write it here with the id of its bare way in `against`: rounds, counts, table and `--only` follow.
 */
import { finishedKeys, textKey, uuidKey } from './keys.js'
import { cycle, replayed, type Scenario, type Setting } from './scenario.js'
import { inTransaction, order, placeBareOrder, placeOrder, placeOrderJs, replyOf, scope } from './work.js'

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
    operation:
      ({ safe }) =>
      (key) =>
        inTransaction(safe, key),
  },
  {
    id: 'transaction-text',
    title: 'transaction mode, text key',
    against: 'bare',
    keys: () => textKey,
    operation:
      ({ safe }) =>
      (key) =>
        inTransaction(safe, key),
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

const ordersJs: readonly Scenario[] = [
  {
    id: 'js-bare',
    title: 'bare transaction, postgres.js',
    operation:
      ({ sql }) =>
      () =>
        sql.begin(placeOrderJs),
  },
  {
    id: 'js-transaction',
    title: 'transaction mode, postgres.js',
    against: 'js-bare',
    keys: () => uuidKey,
    operation:
      ({ safeJs }) =>
      (key) =>
        safeJs.transaction({ scope, key, input: order }, ({ tx }) => placeOrderJs(tx)),
  },
]

/** Nine of ten from what the cache holds, the tenth from what it does not. */
function mostlyCached({ cachedKeys, finished }: Setting): () => string {
  const hit = cycle(cachedKeys)
  const miss = cycle(finished)
  let drawn = 0
  return () => {
    drawn += 1
    return drawn % 10 === 0 ? miss() : hit()
  }
}

const select = 'select key, scope, reply from bench.replies where key = $1 and scope = $2'

export function readReply(pool: Setting['pool'], key: string) {
  return pool.query({ name: 'bench_select', text: select, values: [key, scope] })
}

function replays(id: string, title: string, keysOf: (setting: Setting) => readonly string[]): Scenario[] {
  const keys = (setting: Setting) => cycle(keysOf(setting))
  return [
    {
      id: `${id}-transaction`,
      title: `${title}, transaction mode`,
      against: 'select',
      keys,
      operation:
        ({ safe }) =>
        (key) =>
          replayed(inTransaction(safe, key)),
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
        readReply(pool, key),
  },
  {
    id: 'replay-retry',
    title: 'replay, the request says that it is a retry',
    against: 'select',
    keys: ({ finished }) => cycle(finished),
    operation:
      ({ safe }) =>
      (key) =>
        replayed(inTransaction(safe, key, true)),
  },
  {
    id: 'replay-cache',
    title: 'replay, 90 % of them from the cache',
    against: 'select',
    keys: mostlyCached,
    operation:
      ({ cached }) =>
      (key) =>
        replayed(inTransaction(cached, key)),
  },
  ...replays('replay', 'replay', ({ finished }) => finished),
  ...replays('hot', 'replay of one key', ({ finished }) => finished.slice(0, 1)),
]

export const scenarios: readonly Scenario[] = [...orders, ...ordersJs, ...reads]

/** Finishes the keys that are replayed. */
export async function finishKeys(setting: Setting, count: number): Promise<string[]> {
  const keys = await finishedKeys(count, (key) => inTransaction(setting.safe, key))
  await keepReplies(setting.pool, keys)
  return keys
}

/** Gives the bare SELECT a row for each of the keys. */
export async function keepReplies(pool: Setting['pool'], keys: readonly string[]): Promise<void> {
  await pool.query('insert into bench.replies select key, $2, $3 from unnest($1::text[]) as finished (key)', [
    keys,
    scope,
    JSON.stringify(replyOf('123456')),
  ])
}
