/** No event, error or cause carries a key or a scope, also where the server's own error quotes the row. */
import { inspect } from 'node:util'
import { retrysafe } from 'retrysafe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withoutValues } from '../../dist/stores/postgres/plain-error.js'
import { type Bench, claimRequest, freshKey, openBench } from './harness.js'

let bench: Bench

beforeAll(async () => {
  bench = await openBench()
  // Refuses every row of ours, and quotes it: "Failing row contains (…)".
  await bench.sql('alter table retrysafe.intent add constraint refuses_all check (attempts < 0) not valid')
})

afterAll(() => bench.close())

const scope = 'a-tenant-that-nobody-may-read'

/** What whoever logs a thrown error and the events would print. */
async function printed(mode: 'transaction' | 'lease', key: string): Promise<string> {
  const safe = retrysafe({ store: bench.store, mode })
  const seen: unknown[] = []
  safe.on('storeError', (event) => seen.push(event))
  safe.on('failed', (event) => seen.push(event))
  const call = mode === 'lease' ? safe.run : safe.transaction
  const thrown = await call({ scope, key }, () => 'done').then(
    () => expect.fail('the row was taken'),
    (error: unknown) => error,
  )
  return inspect([thrown, ...seen], { depth: 20, showHidden: true })
}

test.each(['transaction', 'lease'] as const)('what fails in %s mode quotes no row of ours', async (mode) => {
  const key = freshKey()
  const text = await printed(mode, key)
  expect(text).toContain('refuses_all')
  expect(text).toContain('23514')
  expect(text).not.toContain(key)
  expect(text).not.toContain(scope)
})

test('the server does quote the row', async () => {
  const { identity } = claimRequest(freshKey())
  const values = [identity.key, identity.scope]
  const insert = `insert into retrysafe.intent (key, scope, state, owner, generation, fingerprint, ends_at)
    values ($1, $2, 1, gen_random_uuid(), 1, '\\x00', now())`
  await expect(bench.sql(insert, values)).rejects.toMatchObject({
    detail: expect.stringContaining(identity.key),
  })
})

test('a tool that puts the parameters into the message of its own error is looked through', () => {
  const server = Object.assign(new Error('duplicate key'), {
    code: '23505',
    severity: 'ERROR',
    detail: 'k1',
    parameters: ['k1'],
  })
  const wrapped = new Error('Failed query: insert … params: k1', { cause: server })
  const told = withoutValues(wrapped)
  expect(told).toMatchObject({ message: 'duplicate key', code: '23505', severity: 'ERROR' })
  expect(inspect(told, { showHidden: true })).not.toContain('k1')
  const broken = new Error('connect ECONNREFUSED')
  expect(withoutValues(broken)).toBe(broken)
})
