/** Owners that stop without dying: a paused process must not hold a key for ever, and must not write when it wakes. */
import { expect, test } from 'vitest'
import { until } from '../setup/until.js'
import { crashRoom } from './room.js'
import { send, sendUntilDefinite } from './service.js'

const room = crashRoom()

/** Whether somebody's transaction with the work in it is open. */
async function isWorking(): Promise<boolean> {
  const { rows } = await room.ledger.pool.query(
    `select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
  )
  return rows.length > 0
}

test('a paused owner in transaction mode is rolled back by the server, and its late save is refused (rule 21)', async () => {
  const owner = await room.service({ WORK_TIMEOUT_MS: '1000' })
  const other = await room.service({ WORK_TIMEOUT_MS: '1000' })
  const first = send(owner.url, '/transaction', 'paused', { workMs: 600 })
  await until(isWorking)
  owner.process.kill('SIGSTOP')
  const second = await sendUntilDefinite(other.url, '/transaction', 'paused', { workMs: 600 })
  expect(second).toMatchObject({ status: 201, replayed: false })
  owner.process.kill('SIGCONT')
  const late = await first
  // It learns what stands, or that it cannot know; it never says something else happened.
  expect([201, 503]).toContain(late?.status)
  if (late?.status === 201) expect(late.body).toBe(second.body)
  expect(await room.ledger.effects('paused')).toHaveLength(1)
  expect(await sendUntilDefinite(owner.url, '/transaction', 'paused', { workMs: 600 })).toMatchObject({
    replayed: true,
    body: second.body,
  })
})

test('a late owner in lease mode cannot overwrite the outcome, and its writes roll back (rules 3 and 26)', async () => {
  const owner = await room.service({ LEASE_MS: '500' })
  const other = await room.service({ LEASE_MS: '500' })
  const first = send(owner.url, '/lease', 'late', { workMs: 300 })
  await until(async () => {
    const { rows } = await room.ledger.pool.query(
      `select 1 from retrysafe.intent where key = 'late' and state = 1`,
    )
    return rows.length > 0
  })
  owner.process.kill('SIGSTOP')
  const second = await sendUntilDefinite(other.url, '/lease', 'late', { workMs: 300 })
  expect(second).toMatchObject({ status: 201, replayed: false })
  owner.process.kill('SIGCONT')
  const late = await first
  expect(late).toMatchObject({ status: 201, replayed: true, body: second.body })
  const effects = await room.ledger.effects('late')
  expect(effects).toHaveLength(1)
})
