/** A database that accepts connections and never answers: nobody waits for ever, and no end is taken for another (rules 10, 17). */
import { createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { retrysafe } from 'retrysafe'
import { postgres } from 'retrysafe/postgres'
import { type CuttingProxy, cuttingProxy } from 'retrysafe/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, freshKey, openBench, until } from './harness.js'

let bench: Bench
let silent: Server
const sockets = new Set<Socket>()

beforeAll(async () => {
  bench = await openBench()
  silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1')
})

afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  silent.close()
  await bench.close()
})

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

test.each(['transaction', 'run'] as const)(
  'a server that never greets is down: 503, and the work does not run (%s)',
  async (mode) => {
    const pool = new pg.Pool({ host: '127.0.0.1', port: portOf(silent), max: 2 })
    const safe = retrysafe({ store: postgres(pool, { answerTimeoutMs: 100 }) })
    let ran = false
    const refused = safe[mode]({ scope: 's', key: 'k' }, () => {
      ran = true
    })
    await expect(refused).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(ran).toBe(false)
  },
)

async function behindProxy(options: { answerTimeoutMs: number }) {
  const { hostname: host, port } = new URL(bench.database.connectionString)
  const proxy: CuttingProxy = await cuttingProxy({ host, port: Number(port) })
  const url = new URL(bench.database.connectionString)
  url.port = String(proxy.port)
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  pool.on('error', () => undefined)
  const safe = retrysafe({ store: postgres(pool, options), workTimeoutMs: 2000 })
  return { proxy, pool, safe }
}

test('a server that falls silent before COMMIT is answered: the caller is told 503, and the retry finds the one effect or makes it', async () => {
  const { proxy, pool, safe } = await behindProxy({ answerTimeoutMs: 300 })
  const key = freshKey()
  const work = (note: string) =>
    safe.transaction({ scope: 's', key }, async ({ tx }) => {
      await tx.query('insert into effect (key, note) values ($1, $2)', [key, note])
      if (note === 'first') proxy.pause()
      return note
    })
  await expect(work('first')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503 })
  proxy.resume()
  await until(async () => {
    const answer = await work('second').catch(() => undefined)
    return answer !== undefined
  })
  expect(await bench.effects(key)).toBe(1)
  await until(() => pool.totalCount === pool.idleCount)
  await pool.end()
  await proxy.close()
})

test('a pool that is drained by others is told of, and its connection is given back when it comes late', async () => {
  const { pool, store } = bench.another({ answerTimeoutMs: 100 }, { max: 1 })
  const hog = await pool.connect()
  const safe = retrysafe({ store })
  await expect(safe.run({ scope: 's', key: freshKey() }, () => 1)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  hog.release()
  await until(() => pool.idleCount === 1)
  expect(await safe.run({ scope: 's', key: freshKey() }, () => 1)).toMatchObject({ value: 1 })
})
