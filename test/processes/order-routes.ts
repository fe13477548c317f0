/** The routes of the order server: one for each way an intent can run, with work that the request's body steers. */
import type express from 'express'
import type pg from 'pg'
import { type Retrysafe, reply } from 'retrysafe'
import { idempotent } from 'retrysafe/express'
import type { PgTx } from 'retrysafe/postgres'

type Tx = PgTx<pg.Pool>

/** What the work does besides its one effect. */
interface Steering {
  /** How long it takes. */
  readonly workMs?: number
  /** The first try of each key in each process throws. */
  readonly failFirst?: boolean
  /** A record and an effect that a rival has written meanwhile: copies of those of this key. */
  readonly rival?: string
  /** Somebody else takes the claim of the first attempt away. */
  readonly stolen?: boolean
}

interface Attempt {
  readonly key: string
  readonly generation: number
  readonly attempt: number
}

const insertEffect = 'insert into effects (key, payload, generation) values ($1, $2, $3) returning id'
const copyRecord = `insert into retrysafe.intent
  select (jsonb_populate_record(i, jsonb_build_object('key', $1::text))).* from retrysafe.intent i where key = $2`
const copyEffect = `insert into effects (key, payload, generation)
  select $1, payload, generation from effects where key = $2`

/** `leaseMs` also is the time limit of transactions that nobody ends. */
export function mountRoutes(app: express.Express, safe: Retrysafe<Tx>, pool: pg.Pool, idleMs: number): void {
  const failed = new Set<string>()

  async function steer(attempt: Attempt, body: unknown): Promise<void> {
    const { workMs, failFirst, rival, stolen } = body as Steering
    const { key } = attempt
    if (workMs) await new Promise((resume) => setTimeout(resume, workMs))
    if (failFirst && !failed.has(key)) {
      failed.add(key)
      throw new Error('the work has failed')
    }
    if (rival !== undefined && rival !== key) {
      await pool.query(copyEffect, [key, rival])
      await pool.query(copyRecord, [key, rival])
    }
    if (stolen && attempt.attempt === 1)
      await pool.query('update retrysafe.intent set owner = gen_random_uuid() where key = $1', [key])
  }

  async function work(tx: Pick<Tx, 'query'>, attempt: Attempt, body: unknown): Promise<{ id: string }> {
    const { rows } = await tx.query(insertEffect, [attempt.key, JSON.stringify(body), attempt.generation])
    await steer(attempt, body)
    return { id: rows[0].id }
  }

  for (const [suffix, onOwnerLost] of [
    ['', 'rerun'],
    ['-unknown', 'unknown'],
  ] as const) {
    app.post(
      `/transaction${suffix}`,
      idempotent(safe, { mode: 'transaction', onOwnerLost }, async ({ tx, body, ...attempt }) =>
        reply(201, await work(tx, attempt, body)),
      ),
    )
    app.post(
      `/lease${suffix}`,
      idempotent(safe, { mode: 'lease', onOwnerLost }, async ({ commit, body, ...attempt }) => {
        await steer(attempt, body)
        return commit(async (tx) => reply(201, await work(tx, attempt, {})))
      }),
    )
  }
  app.post(
    '/plain',
    idempotent(safe, { mode: 'lease' }, async ({ body, ...attempt }) =>
      reply(201, await work(pool, attempt, body)),
    ),
  )
  app.post(
    '/existing',
    idempotent(safe, { mode: 'transaction' }),
    async (request: express.Request, response: express.Response) => {
      const { idempotency } = request as unknown as { idempotency: Attempt & { tx: Tx } }
      response.status(201).json(await work(idempotency.tx, idempotency, request.body))
    },
  )
  app.post('/within', async (request, response) => {
    response.status(201).json(await within(request.get('idempotency-key') ?? '', request.body, response))
  })
  app.post('/sweep', async (_request, response) => {
    response.status(200).json({ removed: await safe.sweep() })
  })

  /** As a user would: a transaction of one's own, with a limit of one's own. */
  async function within(key: string, body: unknown, response: express.Response): Promise<unknown> {
    const client = await pool.connect()
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    try {
      await client.query('begin')
      await client.query(`set local idle_in_transaction_session_timeout = ${idleMs}`)
      const intent = { scope: 'alice', key, input: body }
      const { value, replayed } = await safe.within(client, intent, ({ tx, ...attempt }) =>
        work(tx, attempt, body),
      )
      await client.query('commit')
      if (replayed) response.set('idempotent-replayed', 'true')
      return value
    } catch (error) {
      await client.query('rollback').catch(onError)
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(broken)
    }
  }
}
