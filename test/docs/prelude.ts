/** The few names that an example may use without saying where they come from. */
export const prelude = `
import type { Express, RequestHandler } from 'express'
import type pg from 'pg'
import type { Intent, Retrysafe } from 'retrysafe'
import type { PgTx } from 'retrysafe/postgres'
import type { MemoryTx } from 'retrysafe/memory'
import type { HttpHarness, MovableClock } from 'retrysafe/testing'

declare global {
  // What the reader has already.
  const app: Express
  const authenticate: RequestHandler
  const pool: pg.Pool
  const user: { readonly id: string }
  const provider: {
    charge(order: object, terms: { reference: string; signal: AbortSignal }): Promise<{ id: string }>
    find(charge: { reference: string }): Promise<{ id: string } | undefined>
  }
  const mailer: { send(mail: unknown): Promise<void> }
  const url: string
  const providerUrl: string
  const body: string
  // The instance that an earlier example made, and what it is asked.
  const safe: Retrysafe<PgTx<pg.Pool>>
  const scope: string
  const key: string
  const input: { readonly total: number }
  const intent: Intent
  const clock: MovableClock
  const work: () => string
  // What somebody who proves an adapter has written.
  const open: HttpHarness<MemoryTx>['open']
  const ledger: HttpHarness<MemoryTx>['ledger']
  const start: HttpHarness<MemoryTx>['start']
  // Whatever the reader does with a wait.
  const later: (waitMs: number | undefined) => void
  const tryAgainIn: (waitMs: number) => void
}
`
