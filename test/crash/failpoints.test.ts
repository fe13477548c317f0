/**
 * Every named moment between two durable effects × {SIGKILL, SIGSTOP past the lease then SIGCONT, throw}: then a retry finds the one
 * effect or makes it. A moment without a case fails here.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../setup/until.js'
import { failpointCases, sweeperNames } from './failpoint-cases.js'
import { type FailpointHall, openFailpointHall, stopped } from './failpoint-hall.js'
import { type FailpointAct, send } from './service.js'

const src = join(import.meta.dirname, '../../src')

let hall: FailpointHall

beforeAll(async () => {
  hall = await openFailpointHall()
})

afterAll(async () => {
  await hall?.close()
})

test('every named moment in the source has a case, and every case its moment', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const named = files
    .filter((name) => name !== 'failpoints.ts')
    .flatMap((name) => [...readFileSync(join(src, name), 'utf8').matchAll(/\bhit\(([^)]*)\)/g)])
    .map(([, name = '']) => name.slice(1, -1))
  const driven = [...failpointCases.flatMap(({ names }) => names), ...sweeperNames]
  expect(named.length).toBeGreaterThan(40)
  expect(named.toSorted()).toEqual(driven.toSorted())
})

test.each([
  ['killed', 'kill'],
  ['stopped past its lease', 'stop'],
  ['hit by an error', 'throw'],
] as const)('a process that is %s at any named moment leaves one effect', async (_, act) => {
  const work = failpointCases.flatMap((one) =>
    one.names.map((name) => () => hall.runCase(one, name, act satisfies FailpointAct)),
  )
  await hall.drive(work, 4)
  expect(await hall.findings()).toEqual([])
})

test('what was thrown at a moment leaves no transaction open and no lease renewed', async () => {
  const query = async (text: string) => (await hall.ledger.pool.query(text)).rows
  const open = `select state, query from pg_stat_activity
    where application_name = 'victim' and (state like 'idle in transaction%' or state = 'active')`
  await until(async () => (await query(open)).length === 0, 'the end of all transactions')
  const live = 'select key from retrysafe.intent where state = 1 and ends_at > clock_timestamp()'
  await until(async () => (await query(live)).length === 0, 'the end of all leases')
})

test.each(['kill', 'stop', 'throw'] as const)('a sweeper with a %s removes no live record', async (act) => {
  for (const name of sweeperNames) {
    const live = `live-${name}-${act}`
    const past = `past-${name}-${act}`
    for (const key of [live, past]) await send(hall.steady.url, '/transaction', key)
    await hall.ledger.pool.query(
      `update retrysafe.intent set ends_at = now() - interval '1 h' where key = $1`,
      [past],
    )
    const victim = await hall.victim()
    await victim.failAt(name, act)
    const first = send(victim.url, '/sweep', 'none')
    if (act === 'stop') {
      await stopped(victim, first)
      const again = await send(hall.steady.url, '/sweep', 'none')
      expect(again?.status).toBe(200)
      victim.process.kill('SIGCONT')
    }
    const told = await first
    expect(told?.status).toBe({ kill: undefined, stop: 200, throw: 503 }[act])
    await send(hall.steady.url, '/sweep', 'none')
    const { rows } = await hall.ledger.pool.query('select key from retrysafe.intent where key in ($1, $2)', [
      live,
      past,
    ])
    expect(rows).toEqual([{ key: live }])
    if (act !== 'kill') await victim.kill()
  }
})

test('and so it stays', async () => {
  expect(await hall.findings()).toEqual([])
})
