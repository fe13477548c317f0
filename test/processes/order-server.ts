/**
 * An Express service on PostgreSQL that a test starts as a process of its own, and that kills itself at a named moment.
 *
 * It listens on a free loopback port and sends `{ port }` to its parent. `{ arm: { at, moment } }` counts messages to the database
 * (and replies to the caller) from then on and raises SIGKILL right before or right after number `at`; `{ count: true }` asks for the number so far.
 * `{ failpoint: { name, act } }` does the same at a named moment of the library, or stops, or throws; `{ fault: { point, fault } }` plans a fault of the store.
 */
import express from 'express'
import pg from 'pg'
import { retrysafe } from 'retrysafe'
import { rawBody } from 'retrysafe/express'
import { postgres } from 'retrysafe/postgres'
import { type Fault, type FaultPoint, planFaults, withFaults } from 'retrysafe/testing'
import { mountRoutes } from './order-routes.js'

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
  application_name: process.env.SERVICE_NAME ?? 'service',
})
const faults = planFaults()
const store = withFaults(postgres(pool), faults)
const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0)
const machine = Date.now
Date.now = () => machine() + skewMs
const workTimeoutMs = Number(process.env.WORK_TIMEOUT_MS ?? 10_000)
const safe = retrysafe({
  store,
  scope: (request: express.Request) => request.get('authorization') ?? 'nobody',
  leaseMs: Number(process.env.LEASE_MS ?? 1000),
  workTimeoutMs,
  ...(process.env.WAIT_MS ? { whileRunning: { waitMs: Number(process.env.WAIT_MS) } } : {}),
})

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

mountRoutes(app, safe, pool, workTimeoutMs)
app.use(
  (error: { status?: number }, _request: express.Request, response: express.Response, _next: unknown) => {
    response.status(error.status ?? 500).json({ error: String(error) })
  },
)

/** What happens at a named moment of the library, once: the process dies, stands still, or goes on with an error. */
interface Failpoint {
  readonly name: string
  readonly act: 'kill' | 'stop' | 'throw'
}

let hits = 0

function armFailpoint({ name, act }: Failpoint): void {
  const slot = Symbol.for('retrysafe.failpoints')
  hits = 0
  Object.assign(globalThis, {
    [slot]: (reached: string) => {
      if (reached !== name) return
      Object.assign(globalThis, { [slot]: undefined })
      hits += 1
      if (act === 'throw') throw new Error(`thrown at ${name}`)
      process.kill(process.pid, act === 'kill' ? 'SIGKILL' : 'SIGSTOP')
    },
  })
}

interface Message {
  readonly arm?: Arm
  readonly count?: true
  readonly failpoint?: Failpoint
  readonly hits?: true
  readonly fault?: { readonly point: FaultPoint; readonly fault: Fault }
}

process.on('message', (message: Message) => {
  if (message.arm) {
    armed = message.arm
    seen = 0
    process.send?.({ armed: true })
  }
  if (message.count) process.send?.({ seen })
  if (message.failpoint) {
    armFailpoint(message.failpoint)
    process.send?.({ armed: true })
  }
  if (message.hits) process.send?.({ hits })
  if (message.fault) {
    faults.heal()
    faults.next(message.fault.point, message.fault.fault)
    process.send?.({ armed: true })
  }
})
// The pool has a warm connection before anything is counted: a first one would add the statements of its start.
await pool.query('select 1')
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
