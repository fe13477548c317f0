/** A process may be frozen or killed once its answer is out (a function in the cloud): by then everything is stored and nothing is under way (rule 8). */
import express from 'express'
import pg from 'pg'
import { reply, retrysafe } from 'retrysafe'
import { idempotent } from 'retrysafe/express'
import { postgres } from 'retrysafe/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { requestText, wire } from './suite/site.js'

let database: FreshDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await freshDatabase()
  pool = new pg.Pool({ connectionString: database.connectionString, max: 4 })
  await postgres(pool).migrate()
})

afterAll(async () => {
  await pool.end()
  await database.drop()
})

/** How often something was sent to the database. */
function watch(client: pg.Pool) {
  const traffic = { sent: 0 }
  client.on('connect', (connected) => {
    const { stream } = (connected as unknown as { connection: { stream: NodeJS.WritableStream } }).connection
    const write = stream.write
    stream.write = ((...given: unknown[]) => {
      traffic.sent += 1
      return Reflect.apply(write, stream, given)
    }) as typeof write
  })
  return traffic
}

const kinds = (['transaction', 'lease'] as const).flatMap((mode) =>
  (['replies', 'around'] as const).map((handlers) => [mode, handlers] as const),
)

test.each(kinds)(
  'when the last byte of an answer goes out, its outcome is stored and nothing is sent any more (%s, %s)',
  async (mode, handlers) => {
    const own = new pg.Pool({ connectionString: database.connectionString, max: 4 })
    const traffic = watch(own)
    const safe = retrysafe({ store: postgres(own), mode, scope: 'caller' })
    const atEnd: { sent: number; busy: number }[] = []
    const app = express()
    app.use((_request, response, next) => {
      const end = response.end
      response.end = ((...given: unknown[]) => {
        // What a snapshot of the process at this moment would hold.
        atEnd.push({ sent: traffic.sent, busy: own.totalCount - own.idleCount })
        return Reflect.apply(end, response, given)
      }) as typeof end
      next()
    })
    if (handlers === 'replies')
      app.post(
        '/',
        idempotent(safe, {}, () => reply(201, { done: true })),
      )
    else
      app.post('/', idempotent(safe), (_request, response) => void response.status(201).json({ done: true }))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resume) => server.once('listening', resume))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const key = `freeze-${mode}-${handlers}`
    for (const status of ['201 Created', 'Idempotent-Replayed: true']) {
      const client = wire(port)
      client.write(requestText('/', '', { 'idempotency-key': key, connection: 'close' }))
      await client.closed
      expect(client.received()).toContain(status)
      // Whatever had been left for later would have been sent by now.
      for (let turns = 0; turns < 50; turns += 1) await new Promise((resume) => setImmediate(resume))
      expect(atEnd.at(-1)?.sent).toBe(traffic.sent)
    }
    expect(traffic.sent).toBeGreaterThan(0)
    // A replay leaves its reader's transaction to be rolled back: nothing of it is waited for.
    expect(atEnd[0]?.busy).toBe(0)
    // Another process finds it done.
    const other = retrysafe({ store: postgres(pool) })
    expect(await other.show({ scope: 'caller', key })).toMatchObject({ state: 'done' })
    server.closeAllConnections()
    server.close()
    await own.end()
  },
)
