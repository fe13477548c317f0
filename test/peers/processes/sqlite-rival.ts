/** Another process on the file: it hammers, holds the write lock, or commits one key after the other until it is killed. */
import { isRetrysafeError, retrysafe, type SqliteStore } from '../../processes/own-sqlite.js'
import { type Db, ledger, type Opening, open } from './sqlite-store.js'

export type Order =
  | { readonly do: 'hammer'; readonly opening: Opening; readonly keys: readonly string[] }
  | { readonly do: 'hold'; readonly opening: Opening; readonly key: string }
  | { readonly do: 'march'; readonly opening: Opening; readonly prefix: string }

/** What is told: how attempts ended, that the lock is held, which key was acknowledged. */
export type Told =
  | { readonly ends: readonly string[]; readonly longestMs: number }
  | { readonly held: true }
  | { readonly acknowledged: string }

const scope = 'rivals'

function tell(told: Told): void {
  process.send?.(told)
}

/** Each key once in each mode's turn, all at once; what surfaces is `done`, a code of ours, or another error's text. */
async function hammer(store: SqliteStore<Db>, keys: readonly string[]): Promise<void> {
  const safe = retrysafe({ store, whileRunning: { waitMs: 20_000 } })
  const write = (tx: Db, key: string, generation: number) => {
    ledger.write(tx, { key, payload: String(process.pid), generation })
    return key
  }
  let longestMs = 0
  const attempt = async (key: string, index: number) => {
    const from = performance.now()
    const intent = { scope, key, input: key }
    try {
      if (index % 2 === 0) {
        await safe.transaction(intent, ({ tx, generation }) => void write(tx, key, generation))
      } else {
        await safe.run(intent, ({ commit, generation }) => commit((tx) => void write(tx, key, generation)))
      }
      return 'done'
    } catch (error) {
      return isRetrysafeError(error) ? error.code : String(error)
    } finally {
      longestMs = Math.max(longestMs, performance.now() - from)
    }
  }
  tell({ ends: await Promise.all(keys.map(attempt)), longestMs })
}

/** Stays in the work for ever; told to let go, it ends. */
async function hold(store: SqliteStore<Db>, key: string): Promise<void> {
  const safe = retrysafe({ store })
  const letGo = new Promise((resolve) => process.once('message', resolve))
  await safe.transaction({ scope, key }, async ({ tx, generation }) => {
    ledger.write(tx, { key, payload: 'held', generation })
    tell({ held: true })
    await letGo
  })
}

async function march(store: SqliteStore<Db>, prefix: string): Promise<void> {
  const safe = retrysafe({ store })
  for (let step = 0; ; step += 1) {
    const key = `${prefix}-${step}`
    const write = (tx: Db, generation: number) => ledger.write(tx, { key, payload: prefix, generation })
    if (step % 2 === 0) {
      await safe.transaction({ scope, key }, async ({ tx, generation }) => {
        write(tx, generation)
        await new Promise((resume) => setImmediate(resume))
      })
    } else {
      await safe.run({ scope, key }, ({ commit, generation }) => commit((tx) => void write(tx, generation)))
    }
    tell({ acknowledged: key })
  }
}

process.once('message', async (order: Order) => {
  const { store, close } = await open(order.opening)
  if (order.do === 'hammer') await hammer(store, order.keys)
  else if (order.do === 'hold') await hold(store, order.key)
  else await march(store, order.prefix)
  await close()
  process.disconnect()
})
