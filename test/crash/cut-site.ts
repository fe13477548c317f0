/**
 * A service in this process, over any port: every way in which an intent can run on PostgreSQL, each as one function that sends an
 * attempt and says what its caller was told.
 */
import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import pg from 'pg'
import { isRetrysafeError, type Retrysafe, reply, retrysafe } from 'retrysafe'
import { idempotent, rawBody } from 'retrysafe/express'
import { type PgTx, postgres } from 'retrysafe/postgres'
import type { Told } from 'retrysafe/testing'

/** Short, so that a stall past it costs little; renewals come at a third of it. */
export const leaseMs = 450
/**
 * Of the way that is about renewals. Longer: on a busy machine a short lease is lost before the first renewal is answered, and then its later
 * messages, which are to be cut, are never sent.
 */
export const renewedLeaseMs = 1200
/** Becomes `idle_in_transaction_session_timeout` in transaction mode. */
const workTimeoutMs = 450
/** The payload of every attempt. */
export const payload = 'p'

export type Way =
  | 'transaction'
  | 'existing'
  | 'savedAlone'
  | 'pinned'
  | 'commit'
  | 'plain'
  | 'renewed'
  | 'within'

type Tx = PgTx<pg.Pool>
type Safe = Retrysafe<Tx>

interface Named {
  readonly key: string
  readonly generation: number
}

export interface Site {
  readonly safe: Safe
  readonly pool: pg.Pool
  /** One attempt. Never rejects. */
  send(way: Way, key: string): Promise<Told>
  close(): Promise<void>
}

async function addEffect(tx: Pick<Tx, 'query'>, { key, generation }: Named) {
  const insert = 'insert into effects (key, payload, generation) values ($1, $2, $3) returning id'
  const { rows } = await tx.query(insert, [key, payload, generation])
  return { id: rows[0].id }
}

/** Opens the service on a pool of its own. `outside` is where work writes that nothing covers. */
export async function openSite(connectionString: string, outside: pg.Pool): Promise<Site> {
  const pool = new pg.Pool({ connectionString, max: 2, application_name: 'site' })
  const store = postgres(pool)
  // Every attempt of a case may wait for the same answer.
  const renewals = new EventEmitter().setMaxListeners(0)
  const renew: typeof store.renew = async (wanted) => {
    try {
      return await store.renew(wanted)
    } finally {
      renewals.emit('answered')
    }
  }
  const safe = retrysafe({ store: { ...store, renew }, scope: 'alice', leaseMs, workTimeoutMs: 10_000 })
  const server = routes(safe, outside, renewals).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function close(): Promise<void> {
    server.closeAllConnections()
    server.close()
    await safe.close()
    await pool.end()
  }

  return {
    safe,
    pool,
    send: (way, key) => (way === 'within' ? sendWithin(pool, safe, key) : post(`${url}/${way}`, key)),
    close,
  }
}

function routes(safe: Safe, outside: pg.Pool, renewals: EventEmitter): express.Express {
  const app = express()
  const short = { mode: 'transaction', workTimeoutMs } as const
  app.use(express.json({ verify: rawBody }))
  app.post(
    '/transaction',
    idempotent(safe, short, async ({ tx, ...attempt }) => reply(201, await addEffect(tx, attempt))),
  )
  app.post('/existing', idempotent(safe, short), async (request: express.Request, response) => {
    const { idempotency } = request as unknown as { idempotency: Named & { tx: Tx } }
    response.status(201).json(await addEffect(idempotency.tx, idempotency))
  })
  app.post(
    '/savedAlone',
    idempotent(safe, { ...short, keep: 'all' }, async ({ tx, ...attempt }) => {
      await addEffect(tx, attempt)
      return reply(500, { kept: randomUUID() })
    }),
  )
  app.post(
    '/pinned',
    idempotent(safe, short, async ({ tx, keepFailure, ...attempt }) => {
      await addEffect(tx, attempt)
      keepFailure()
      return reply(500, { kept: randomUUID() })
    }),
  )
  for (const [path, ownLeaseMs] of [
    ['/commit', leaseMs],
    ['/renewed', renewedLeaseMs],
  ] as const) {
    app.post(
      path,
      idempotent(
        safe,
        { mode: 'lease', leaseMs: ownLeaseMs },
        async ({ commit, signal, key, generation }) => {
          // The work lasts until a renewal was answered, or could not be: so there is one in every run, however busy the machine.
          if (path === '/renewed') await once(renewals, 'answered', { signal }).catch(ignore)
          return commit(async (tx) => reply(201, await addEffect(tx, { key, generation })))
        },
      ),
    )
  }
  app.post(
    '/plain',
    idempotent(safe, { mode: 'lease' }, async (attempt) => reply(201, await addEffect(outside, attempt))),
  )
  // Quiet: what the work throws is expected here.
  app.use((_error: unknown, _request: express.Request, response: express.Response, _next: unknown) => {
    response.status(500).json({ code: 'THROWN' })
  })
  return app
}

async function post(url: string, key: string): Promise<Told> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ payload }),
    })
    const { status, headers } = response
    const answer = await response.text()
    if (status === 201 || answer.includes('"kept"'))
      return { kind: 'ok', answer, replayed: headers.has('idempotent-replayed') }
    if (status === 409 || status === 503) return { kind: 'info' }
    return { kind: 'fail', code: `${status} ${answer}` }
  } catch {
    return { kind: 'info' }
  }
}

const ignore = () => undefined

/** As a user would: a transaction of one's own around `within`, with a limit of one's own. */
async function sendWithin(pool: pg.Pool, safe: Safe, key: string): Promise<Told> {
  const client = await pool.connect().catch(() => undefined)
  if (client === undefined) return { kind: 'info' }
  client.on('error', ignore)
  let told: Told = { kind: 'info' }
  let broken: boolean | undefined
  try {
    await client.query('begin')
    await client.query(`set local idle_in_transaction_session_timeout = ${workTimeoutMs}`)
    const { value, replayed } = await safe.within(
      client,
      { scope: 'alice', key, input: payload },
      (attempt) => addEffect(attempt.tx, attempt),
    )
    const { command } = await client.query('commit')
    told =
      command === 'COMMIT'
        ? { kind: 'ok', answer: JSON.stringify(value), replayed }
        : { kind: 'fail', code: command }
  } catch (error) {
    broken = true
    if (isRetrysafeError(error) && !error.retryable) told = { kind: 'fail', code: error.code }
  }
  if (!broken) client.removeListener('error', ignore)
  client.release(broken)
  return told
}
