/**
 * An Express service on PostgreSQL that a test starts as a process of its own, and that kills itself at a named moment.
 *
 * It listens on a free loopback port and sends `{ port }` to its parent. `{ arm: { at, moment } }` counts messages to the database
 * (and replies to the caller) from then on and raises SIGKILL right before or right after number `at`; `{ count: true }` asks for the number so far.
 */
import express from 'express'
import pg from 'pg'
import { reply, retrysafe } from 'retrysafe'
import { idempotent, rawBody } from 'retrysafe/express'
import { postgres } from 'retrysafe/postgres'

interface Arm {
  readonly at: number
  readonly moment: 'before' | 'after'
}

let armed: Arm | undefined
let seen = 0

function kill(): void {
  process.kill(process.pid, 'SIGKILL')
}

/** Counts one crossing of the process's border, and dies where the test said. */
function cross<Answer>(send: (after: () => void) => Answer): Answer {
  seen += 1
  const here = armed?.at === seen ? armed.moment : undefined
  if (here === 'before') kill()
  return send(() => {
    if (here === 'after') kill()
  })
}

type Query = (this: pg.Client, ...parameters: unknown[]) => unknown

const query = pg.Client.prototype.query as unknown as Query
pg.Client.prototype.query = function counted(this: pg.Client, ...parameters: unknown[]) {
  return cross((after) => {
    const [flight] = parameters as { handleReadyForQuery?: () => void }[]
    if (typeof flight?.handleReadyForQuery === 'function') {
      const ready = flight.handleReadyForQuery
      flight.handleReadyForQuery = () => {
        after()
        ready.call(flight)
      }
      return query.apply(this, parameters)
    }
    const answer = query.apply(this, parameters)
    if (answer instanceof Promise) answer.then(after, () => undefined)
    return answer
  })
} as never

const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: Number(process.env.POOL_SIZE ?? 4),
})
const store = postgres(pool)
const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0)
const machine = Date.now
Date.now = () => machine() + skewMs
const safe = retrysafe({
  store,
  scope: (request: express.Request) => request.get('authorization') ?? 'nobody',
  leaseMs: Number(process.env.LEASE_MS ?? 1000),
  workTimeoutMs: Number(process.env.WORK_TIMEOUT_MS ?? 10_000),
})

const insertEffect = 'insert into effects (key, payload, generation) values ($1, $2, $3) returning id'

const app = express()
app.use(express.json({ verify: rawBody }))
app.use((_request, response, next) => {
  const end = response.end as (...parameters: unknown[]) => unknown
  response.end = ((...parameters: unknown[]) =>
    cross((after) => {
      const answer = end.apply(response, parameters)
      after()
      return answer
    })) as never
  next()
})

async function pause(body: unknown): Promise<void> {
  const { workMs } = body as { workMs?: number }
  if (workMs) await new Promise((resume) => setTimeout(resume, workMs))
}

app.post(
  '/transaction',
  idempotent(safe, { mode: 'transaction' }, async ({ tx, key, generation, body }) => {
    const { rows } = await tx.query(insertEffect, [key, JSON.stringify(body), generation])
    await pause(body)
    return reply(201, { id: rows[0].id })
  }),
)
app.post(
  '/lease',
  idempotent(safe, { mode: 'lease' }, async ({ commit, key, generation, body }) => {
    await pause(body)
    return commit(async (tx) => {
      const { rows } = await tx.query(insertEffect, [key, JSON.stringify(body), generation])
      return reply(201, { id: rows[0].id })
    })
  }),
)
app.post(
  '/existing',
  idempotent(safe, { mode: 'transaction' }),
  async (request: express.Request, response: express.Response) => {
    const { tx, key, generation } = (request as unknown as { idempotency: Attempt }).idempotency
    const { rows } = await tx.query(insertEffect, [key, JSON.stringify(request.body), generation])
    await pause(request.body)
    response.status(201).json({ id: rows[0]?.id })
  },
)

interface Attempt {
  readonly tx: { query(text: string, values: unknown[]): Promise<{ rows: { id: string }[] }> }
  readonly key: string
  readonly generation: number
}

process.on('message', (message: { arm?: Arm; count?: true }) => {
  if (message.arm) {
    armed = message.arm
    seen = 0
    process.send?.({ armed: true })
  }
  if (message.count) process.send?.({ seen })
})
// The pool has a warm connection before anything is counted: a first one would add the statements of its start.
await pool.query('select 1')
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
