/** The store in memory against a Map: there is no server to wait for, so this is what the library itself costs. */
import { retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { order, replyOf } from '../work.js'
import { leaseWay, type StoreBench, type Subject, transactionWay } from './store.js'

/** Orders that are kept: all of them would fill the heap, and what is measured then is its collection. */
const room = 4096

async function openMemory(): Promise<Subject> {
  const safe = retrysafe({ store: memory() })
  const orders = new Map<number, typeof order>()
  const replies = new Map<string, string>()
  let placed = 0

  function place(): void {
    placed += 1
    orders.set(placed % room, { ...order })
  }

  async function placeBare() {
    place()
    return replyOf(String(placed))
  }

  function placeIn(tx: { defer(effect: () => void): void }) {
    tx.defer(place)
    return replyOf('123456')
  }

  return {
    transaction: transactionWay(safe, placeBare, placeIn),
    lease: leaseWay(safe, placeBare),
    read: async (key) => replies.get(key),
    keep: async (keys) => {
      for (const key of keys) replies.set(key, JSON.stringify(replyOf('123456')))
    },
    close: () => safe.close(),
  }
}

export const memoryBench: StoreBench = {
  id: 'memory',
  clients: [{ id: 'memory', peers: [], open: openMemory }],
  start: async () => ({ at: '', what: 'memory', stop: async () => undefined }),
}
