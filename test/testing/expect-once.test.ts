import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Answer, retrysafe } from 'retrysafe'
import { memory } from 'retrysafe/memory'
import { expectOnce } from 'retrysafe/testing'
import { describe, expect, test } from 'vitest'

/** A ledger and attempts on it, right unless something is planted. */
function service() {
  const effects: string[] = []
  const safe = retrysafe({ store: memory() })
  const intent = { scope: 's', key: randomUUID() }
  async function attempt(): Promise<Answer<string>> {
    return safe.transaction(intent, async ({ tx }) => {
      tx.defer(() => void effects.push('order'))
      return 'order-1'
    })
  }
  return { effects, attempt, count: () => effects.length }
}

const created = { status: 201, headers: {}, body: '{"orderId":1}' }
const replay = { status: 201, headers: { 'Idempotent-Replayed': 'true' }, body: '{"orderId":1}' }
const busy = { status: 409, headers: { 'Retry-After': '1' }, body: 'wait' }

/** Attempts that answer as told, one effect in all. */
function answering(answers: readonly unknown[], effectsAdded = 1) {
  let effects = 10
  return expectOnce({
    times: answers.length,
    effects: () => effects,
    attempt: (index) => {
      if (index === 0) effects += effectsAdded
      return answers[index]
    },
  })
}

describe('expectOnce passes', () => {
  test('where one of the attempts takes effect and the others follow it', async () => {
    const { attempt, count } = service()
    const { replays, inProgress, answer } = await expectOnce({ attempt, effects: count, sequential: true })
    expect(replays + inProgress).toBe(4)
    expect(Buffer.from(answer).toString()).toBe('"order-1"')
  })

  test('whatever effects were there before', async () => {
    const { attempt, count, effects } = service()
    effects.push('an earlier one', 'another')
    await expectOnce({ attempt, effects: count, times: 50 })
  })

  test('over HTTP, with the responses of fetch, and reads their bodies', async () => {
    let effects = 0
    const server = createServer((_, response) => {
      effects += 1
      if (effects === 1) response.writeHead(201).end('body')
      else response.writeHead(409, { 'retry-after': '1' }).end('wait')
      effects = 1
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { answer } = await expectOnce({ attempt: () => fetch(url), effects: () => effects })
    expect(Buffer.from(answer).toString()).toBe('201\nbody')
    server.closeAllConnections()
    server.close()
  })

  test('where replays carry the marker in any case, and refusals say when to come back', async () => {
    const upper = { ...replay, headers: new Headers({ 'IDEMPOTENT-REPLAYED': 'true' }) }
    const down = { status: 503, headers: [['Retry-After', '2']], body: '' }
    const once = await answering([created, replay, upper, busy, down])
    expect(once).toMatchObject({ replays: 2, inProgress: 2 })
  })
})

describe('expectOnce takes every definite answer for a first one', () => {
  test.each([[200], [202], [303], [400], [402], [404], [422]])('status %i', async (status) => {
    const { replays } = await answering([
      { ...created, status },
      { ...replay, status },
    ])
    expect(replays).toBe(1)
  })

  test.each([[401], [403], [408], [429], [500], [502]])(
    'but not status %i, which is about the moment or the caller',
    async (status) => {
      await expect(answering([{ ...created, status }])).rejects.toThrow('No attempt got a first answer')
    },
  )

  test('nor a refusal of ours', async () => {
    const headers = { 'content-type': 'application/problem+json' }
    const mismatch = { status: 422, headers, body: '{"code":"KEY_REUSED"}' }
    await expect(answering([mismatch])).rejects.toThrow('No attempt got a first answer')
    await answering([{ ...mismatch, body: '{"code":"OUT_OF_STOCK"}' }])
  })
})

describe('expectOnce finds what is planted (I12)', () => {
  test('work that writes past tx, where it knows the instance', async () => {
    let effects = 0
    const safe = retrysafe({ store: memory() })
    const past = (key: string, more = {}) =>
      expectOnce({
        attempt: () =>
          safe.transaction({ scope: 's', key }, () => {
            effects += 1
          }),
        effects: () => effects,
        ...more,
      })
    await past('unseen')
    await expect(past('seen', { safe })).rejects.toThrow('kept without having used tx')
  })

  test('a duplicate effect behind answers that look right', async () => {
    const { attempt, count, effects } = service()
    async function twice() {
      const answer = await attempt()
      effects.push('the duplicate')
      return answer
    }
    await expect(expectOnce({ attempt: twice, effects: count })).rejects.toThrow(
      /exactly one effect, found \d/,
    )
  })

  test('a duplicate that answers as the first does', async () => {
    await expect(answering([created, created, replay])).rejects.toThrow('exactly one first answer, found 2')
    await expect(answering([created, created, replay], 2)).rejects.toThrow('exactly one effect, found 2')
  })

  test('a divergence: a replay with other bytes', async () => {
    const other = { ...replay, body: '{"orderId":2}' }
    await expect(answering([created, other])).rejects.toThrow('A replay differs from the first answer')
  })

  test.each(['location', 'content-type', 'etag'])('a divergence: a replay with another %s', async (name) => {
    const first = { ...created, headers: { [name]: 'one', date: 'today', 'set-cookie': 'a=1' } }
    const headers = { ...replay.headers, [name]: 'two' }
    const named = `differs from the first answer in its headers:\n${name}: one\nbecame\n${name}: two`
    await expect(answering([first, { ...replay, headers }])).rejects.toThrow(named)
    await expect(answering([first, replay])).rejects.toThrow('became\n(none)')
    await answering([first, { ...replay, headers: { ...headers, [name]: 'one' } }])
  })

  test('a divergence: a replay with another status', async () => {
    await expect(answering([created, { ...replay, status: 200 }])).rejects.toThrow('A replay differs')
  })

  test('a loss: a first answer without an effect', async () => {
    await expect(answering([created, replay], 0)).rejects.toThrow('exactly one effect, found 0')
  })

  test('a loss: an effect and nobody who was answered', async () => {
    await expect(answering([busy, busy])).rejects.toThrow('No attempt got a first answer')
    await expect(answering([replay, busy])).rejects.toThrow('No attempt got a first answer')
  })

  test('a refusal that does not say when to come back', async () => {
    await expect(answering([created, { ...busy, headers: {} }])).rejects.toThrow('be told when to come back')
  })

  test('an attempt that failed in another way, and says how', async () => {
    await expect(answering([created, { status: 500, headers: {}, body: 'oops' }])).rejects.toThrow(
      '1 × 500: oops',
    )
    await expect(answering([created, Promise.reject(new Error('boom'))])).rejects.toThrow('boom')
    await expect(answering([created, 'nothing'])).rejects.toThrow('neither a response nor an answer')
  })

  test('a retry afterwards that runs again', async () => {
    const { attempt, count, effects } = service()
    async function forgetful(index: number) {
      if (index < 5) return attempt()
      effects.push('the duplicate')
      return { value: 'order-1', replayed: true }
    }
    const test = expectOnce({ attempt: forgetful, effects: count, sequential: true })
    await expect(test).rejects.toThrow('The retry afterwards added effects')
  })

  test('a retry afterwards that is not a replay, or another one', async () => {
    const { attempt, count } = service()
    const first = { value: 'order-1', replayed: false }
    const other = { value: 'order-2', replayed: true }
    const lastly = (last: unknown) =>
      expectOnce({ attempt: (index) => (index < 5 ? attempt() : last), effects: count, sequential: true })
    await expect(lastly(first)).rejects.toThrow('The retry afterwards is no replay')
    const { attempt: attemptAgain, count: countAgain } = service()
    await expect(
      expectOnce({
        attempt: (index) => (index < 5 ? attemptAgain() : other),
        effects: countAgain,
        sequential: true,
      }),
    ).rejects.toThrow('The retry afterwards differs')
  })
})
