/** The concurrent test, at size: 5, 50 and 500 attempts on one key, in one process and in four. */
import { beforeAll, expect, test } from 'vitest'
import { crashRoom } from './room.js'
import { expectOneEffect, type Service, send, sendUntilDefinite } from './service.js'

const room = crashRoom()
let services: Service[]

beforeAll(async () => {
  const start = () => room.service({ LEASE_MS: '30000' })
  services = await Promise.all([start(), start(), start(), start()])
})

const cases = ['/transaction', '/existing', '/lease'].flatMap((path) =>
  [1, 4].flatMap((processes) => [5, 50, 500].map((attempts) => ({ path, processes, attempts }))),
)

test.each(cases)(
  '$attempts attempts at $path with one key in $processes process(es) make one effect',
  async (row) => {
    const { path, processes, attempts } = row
    const key = `${path}-${processes}-${attempts}`
    const urls = services.slice(0, processes).map(({ url }) => url)
    const answers = await Promise.all(
      Array.from({ length: attempts }, (_, index) =>
        send(urls[index % processes] ?? '', path, key, { workMs: 200 }),
      ),
    )
    for (const told of answers) {
      expect([201, 409], told?.body).toContain(told?.status)
    }
    expect(answers.filter((told) => told?.status === 201 && !told.replayed)).toHaveLength(1)
    const late = await Promise.all(urls.map((url) => sendUntilDefinite(url, path, key, { workMs: 200 })))
    expect(late.every(({ replayed }) => replayed)).toBe(true)
    await expectOneEffect(room.ledger, key, [...answers, ...late])
  },
)

test('many keys at once over four processes: each has its one effect', async () => {
  const keys = Array.from({ length: 40 }, (_, index) => `many-${index}`)
  const rounds = keys.flatMap((key) => services.map(({ url }) => sendUntilDefinite(url, '/transaction', key)))
  const answers = await Promise.all(rounds)
  for (const [index, key] of keys.entries()) {
    await expectOneEffect(room.ledger, key, answers.slice(index * 4, index * 4 + 4))
  }
})
