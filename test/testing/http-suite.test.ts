/** The HTTP suite is itself tested: an adapter with one planted fault must go red where that fault is defended against (PROOF I12). */
import express, { type RequestHandler } from 'express'
import { type MemoryTx, memory } from 'retrysafe/memory'
import { type HttpHarness, type HttpSite, httpSuite } from 'retrysafe/testing'
import { expect, test } from 'vitest'
import { caller, starter } from '../suites/express-site.js'
import { memoryLedger } from '../suites/memory-ledger.js'

type Planted = Partial<HttpHarness<MemoryTx>>

const start = starter(express, 'parser')

/** Names of the cases that fail with a part of the harness replaced; only those asked for are run. */
async function failing(planted: Planted, names: readonly string[]): Promise<string[]> {
  const store = memory()
  const cases = httpSuite<MemoryTx>({
    mode: 'transaction',
    handlers: 'replies',
    open: async () => ({ store, close: () => undefined }),
    ledger: memoryLedger(),
    caller,
    start,
    ...planted,
  })
  const asked = cases.filter(({ name }) => names.includes(name))
  expect(asked.map(({ name }) => name)).toEqual(names)
  const failed: string[] = []
  for (const { name, run } of asked) await run().catch(() => failed.push(name))
  return failed
}

/** A site whose routes have other options. */
function withOptions(options: object): HttpHarness<MemoryTx>['start'] {
  return ({ safe, routes }: HttpSite<MemoryTx>) =>
    start({ safe, routes: routes.map((route) => ({ ...route, options: { ...route.options, ...options } })) })
}

/** A site behind a middleware that spoils what goes out. */
function behind(middleware: RequestHandler): HttpHarness<MemoryTx>['start'] {
  return starter(Object.assign(() => express().use(middleware), express) as typeof express, 'parser')
}

const plants: readonly (readonly [string, Planted, readonly string[]])[] = [
  [
    'one scope for everybody',
    { caller: () => 'everybody' },
    ['one key of two callers is two intents: nobody sees the answer of another'],
  ],
  [
    'a fingerprint that is always the same',
    { start: withOptions({ fingerprint: () => '' }) },
    [
      'another value under the same key is refused with 422',
      'another query under the same key is refused with 422',
      'another request under a running key is refused with 422',
    ],
  ],
  [
    'keys that are not required',
    { start: withOptions({ required: false }) },
    ['a missing key is refused with 400 before the store is asked'],
  ],
  [
    'failures that are kept',
    { start: withOptions({ keep: 'all' }) },
    ['a status 500 of the handler frees the key', 'a status 429 of the handler frees the key'],
  ],
  [
    'successes that are not kept',
    { start: withOptions({ keep: () => false }) },
    ['a JSON value (201) is replayed as it was', '5 concurrent requests take effect once'],
  ],
  [
    'a replay without its marker',
    {
      start: behind((_, response, next) => {
        const append = response.appendHeader
        response.appendHeader = (name, value) =>
          name.toLowerCase() === 'idempotent-replayed' ? response : append.call(response, name, value)
        next()
      }),
    },
    ['a JSON value (201) is replayed as it was', '5 concurrent requests take effect once'],
  ],
  [
    'a refusal that does not say when to come back',
    {
      start: behind((_, response, next) => {
        const append = response.appendHeader
        response.appendHeader = (name, value) =>
          name.toLowerCase() === 'retry-after' ? response : append.call(response, name, value)
        next()
      }),
    },
    [
      'while the store is down nothing runs: 503 with Retry-After',
      'a duplicate of a running request is told to come back: 409 with Retry-After',
    ],
  ],
]

test.each(plants)('the HTTP suite finds %s', async (_, planted, names) => {
  expect(await failing(planted, names)).toEqual(names)
  expect(await failing({}, names)).toEqual([])
})
