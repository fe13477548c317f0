/** The caller hangs up at a random moment and retries: the work is neither cancelled nor done twice. */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { crashRoom } from './room.js'
import { expectOneEffect, type Service, send, sendUntilDefinite } from './service.js'

const room = crashRoom()
let service: Service

beforeAll(async () => {
  service = await room.service({ POOL_SIZE: '2' })
})

test.each(['/transaction', '/existing', '/lease'])(
  'a caller of %s that hangs up at a random moment finds its one effect',
  async (path) => {
    let number = 0
    const hangUp = fc.asyncProperty(fc.integer({ min: 0, max: 60 }), async (afterMs) => {
      number += 1
      const key = `${path}-${number}`
      const control = new AbortController()
      const first = send(service.url, path, key, { workMs: 20 }, control.signal)
      const timer = setTimeout(() => control.abort(), afterMs)
      const told = await first
      clearTimeout(timer)
      const retry = await sendUntilDefinite(service.url, path, key, { workMs: 20 })
      await expectOneEffect(room.ledger, key, [told, retry])
    })
    await fc.assert(hangUp, { numRuns: 40 })
  },
)

test('a pool of two serves ten requests at once, on ten keys and on one', async () => {
  const keys = Array.from({ length: 10 }, (_, index) => `pool-${index}`)
  const answers = await Promise.all(
    keys.map((key) => sendUntilDefinite(service.url, '/transaction', key, { workMs: 20 })),
  )
  expect(answers.every(({ status, replayed }) => status === 201 && !replayed)).toBe(true)
  const same = await Promise.all(
    keys.map(() => sendUntilDefinite(service.url, '/transaction', 'pool', { workMs: 20 })),
  )
  await expectOneEffect(room.ledger, 'pool', same)
})
