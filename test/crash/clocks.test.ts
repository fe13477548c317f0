/** Clocks that disagree: time zones, and processes a long way off. The store's clock judges. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { until } from '../setup/until.js'
import { crashRoom } from './room.js'
import { expectOneEffect, send, sendUntilDefinite } from './service.js'

const room = crashRoom()

test.each([
  ['Pacific/Tongatapu', 'Pacific/Niue'],
  ['Pacific/Niue', 'Pacific/Tongatapu'],
  ['UTC', 'Asia/Kolkata'],
])('a session in %s and a process in %s see the same lease and retention', async (zone, processZone) => {
  const admin = new pg.Client({ connectionString: room.connectionString })
  await admin.connect()
  await admin.query(
    `alter database "${new URL(room.connectionString).pathname.slice(1)}" set timezone = '${zone}'`,
  )
  await admin.end()
  const one = await room.service({ TZ: processZone })
  const two = await room.service({ TZ: 'UTC' })
  for (const path of ['/transaction', '/lease']) {
    const key = `${path}-${zone}`
    const first = await sendUntilDefinite(one.url, path, key)
    const again = await sendUntilDefinite(two.url, path, key)
    expect(again.replayed).toBe(true)
    await expectOneEffect(room.ledger, key, [first, again])
  }
})

async function isRunning(key: string): Promise<boolean> {
  const { rows } = await room.ledger.pool.query(
    'select 1 from retrysafe.intent where key = $1 and state = 1',
    [key],
  )
  return rows.length > 0
}

test('processes whose clocks are a day apart neither take over a live claim nor forget a done key', async () => {
  const ahead = await room.service({ CLOCK_SKEW_MS: '86400000', LEASE_MS: '20000' })
  const behind = await room.service({ CLOCK_SKEW_MS: '-86400000', LEASE_MS: '20000' })
  for (const [owner, rival] of [
    [ahead, behind],
    [behind, ahead],
  ] as const) {
    const key = `skew-${owner === ahead ? 'ahead' : 'behind'}`
    const first = send(owner.url, '/lease', key, { workMs: 400 })
    await until(() => isRunning(key), 'the owner has its claim')
    // It stands still until the rival has asked, however slow this machine is; its lease is longer than that.
    owner.process.kill('SIGSTOP')
    let held = 0
    let told = await send(rival.url, '/lease', key, { workMs: 400 })
    owner.process.kill('SIGCONT')
    while (told?.status === 409) {
      held += 1
      told = await send(rival.url, '/lease', key, { workMs: 400 })
    }
    expect(held).toBeGreaterThan(0)
    await expectOneEffect(room.ledger, key, [
      await first,
      told,
      await sendUntilDefinite(rival.url, '/lease', key, { workMs: 400 }),
    ])
  }
})
