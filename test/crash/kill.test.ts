/** kill -9 of the service at each point of a request, then retry: one effect, one answer. */
import { beforeAll, expect, test } from 'vitest'
import { crashRoom } from './room.js'
import { expectOneEffect, type Service, send, sendUntilDefinite } from './service.js'

const room = crashRoom()
let steady: Service

beforeAll(async () => {
  steady = await room.service()
})

test.each(['/transaction', '/existing', '/lease'])(
  'a service that is killed at any point of POST %s leaves one effect for the retry to find or to make',
  async (path) => {
    await steady.arm(0, 'before')
    expect((await send(steady.url, path, `${path}-dry`))?.status).toBe(201)
    const crossings = await steady.count()
    // Begin flight, the work's statement, save flight, reply; a lease adds its claim.
    expect(crossings).toBeGreaterThanOrEqual(4)
    for (let at = 1; at <= crossings; at += 1) {
      for (const moment of ['before', 'after'] as const) {
        const key = `${path}-${at}-${moment}`
        const doomed = await room.service()
        await doomed.arm(at, moment)
        const first = await send(doomed.url, path, key)
        await doomed.kill()
        expect(doomed.process.signalCode, key).toBe('SIGKILL')
        const retry = await sendUntilDefinite(steady.url, path, key)
        const again = await send(steady.url, path, key)
        expect(again?.replayed, key).toBe(true)
        await expectOneEffect(room.ledger, key, [first, retry, again])
      }
    }
  },
  120_000,
)
