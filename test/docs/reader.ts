/** What the reader of an example has already, and what a test of one does with it. */
import { randomUUID } from 'node:crypto'
import type { RequestHandler } from 'express'
import type pg from 'pg'
import { retrysafe } from 'retrysafe'
import { postgres } from 'retrysafe/postgres'
import { fingerprintOfValue } from '../../dist/fingerprint.js'
import { until } from '../setup/until.js'

export const authenticate: RequestHandler = (request, _response, next) => {
  Object.assign(request, { user: { id: 'alice' } })
  next()
}

/** What `new pg.Pool()` connects to when nobody says. */
export function useByDefault(connectionString: string): void {
  const { hostname, port, username, password, pathname } = new URL(connectionString)
  process.env.PGHOST = hostname
  process.env.PGPORT = port
  process.env.PGUSER = decodeURIComponent(username)
  process.env.PGPASSWORD = decodeURIComponent(password)
  process.env.PGDATABASE = pathname.slice(1)
}

export function instanceOn(pool: pg.Pool) {
  return retrysafe({ store: postgres(pool), mode: 'transaction', onOwnerLost: 'unknown' })
}

export function providerOf(charges: string[]) {
  const idOf = (reference: string) => ({ id: `ch-${charges.indexOf(reference) + 1}` })
  return {
    charge: async (_order: object, { reference }: { reference: string }) => {
      charges.push(reference)
      return idOf(reference)
    },
    find: async ({ reference }: { reference: string }) =>
      charges.includes(reference) ? idOf(reference) : undefined,
  }
}

/** An owner that is gone without a word; the next attempt found its lease run out. */
export async function abandoned(
  safe: ReturnType<typeof instanceOn>,
  pool: pg.Pool,
  key: string,
): Promise<void> {
  await postgres(pool).claim({
    identity: { key, scope: 'alice' },
    owner: randomUUID(),
    fingerprint: fingerprintOfValue(undefined).bytes(),
    leaseMs: 1,
    callerNowMs: Date.now(),
  })
  await until(async () => {
    const end = await safe
      .run({ scope: 'alice', key }, () => 'ran')
      .catch((error: { code?: string }) => error)
    return 'code' in end && end.code === 'OUTCOME_UNKNOWN'
  })
}

interface Answer {
  readonly status: number
  readonly replayed: boolean
  readonly body: string
  readonly location: string | null
}

export async function post(url: string, key: string | undefined, body: unknown): Promise<Answer> {
  const headers = { 'content-type': 'application/json', authorization: 'alice' }
  const response = await fetch(url, {
    method: 'POST',
    headers: key === undefined ? headers : { ...headers, 'idempotency-key': key },
    body: JSON.stringify(body),
  })
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed') === 'true',
    body: await response.text(),
    location: response.headers.get('location'),
  }
}
