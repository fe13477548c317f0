/** Every command of an operator, against a real database. */
import { retrysafe as instance } from 'retrysafe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, claimRequest, expire, freshKey, openBench } from '../postgres/harness.js'
import { type Ran, retrysafe } from './run.js'

let bench: Bench
let cli: (...words: string[]) => Promise<Ran>

beforeAll(async () => {
  bench = await openBench()
  cli = (...words) => retrysafe(words, { url: bench.database.connectionString })
})

afterAll(() => bench.close())

interface Shown {
  readonly record: Readonly<Record<string, unknown>> | null
  readonly released?: boolean
  readonly resolved?: boolean
}

const named = (key: string) => ['--scope', 'tenant', '--key', key]

/** A running record with the lease that is asked for; its generation. */
async function claimed(key: string, leaseMs = 60_000): Promise<string> {
  const answer = await bench.store.claim(claimRequest(key, { leaseMs }))
  if (!answer.claimed) throw new Error('the key was not fresh')
  return String(answer.generation)
}

/** A record whose owner went away, and that its next attempt gave up on. */
async function unknown(key: string): Promise<string> {
  const request = claimRequest(key)
  const answer = await bench.store.claim(request)
  if (!answer.claimed) throw new Error('the key was not fresh')
  await expire(bench, key)
  const { identity, owner } = request
  await bench.store.abandon({ identity, owner, generation: answer.generation, retainMs: 60_000 })
  return String(answer.generation)
}

async function done(key: string, value: unknown): Promise<void> {
  await instance({ store: bench.store }).transaction({ scope: 'tenant', key }, () => value)
}

test('migrate creates the tables once, and says so', async () => {
  const words = ['migrate', '--schema', 'of_cli', '--json']
  expect((await cli(...words)).json()).toEqual({ migrated: ['0001_intent'] })
  expect((await cli(...words)).json()).toEqual({ migrated: [] })
  const again = await cli('migrate', '--schema', 'of_cli')
  expect([again.code, again.stdout]).toEqual([0, 'Nothing to do: the tables are up to date.\n'])
})

test('sql prints what migrate would apply, without a server and without a driver', async () => {
  const printed = await retrysafe(['sql', '--dialect', 'postgres', '--schema', 'by_hand'])
  expect(printed.code).toBe(0)
  await bench.sql(printed.stdout)
  expect((await cli('migrate', '--schema', 'by_hand', '--json')).json()).toEqual({ migrated: [] })
  const byUrl = await retrysafe(['sql', '--json', '--url', 'postgresql://nobody@127.0.0.1:1/none'])
  expect(byUrl.json()).toEqual({ sql: bench.store.sql() })
})

test('list shows records by state, with their keys and never with an outcome', async () => {
  const [free, stuck] = [freshKey(), freshKey()]
  await done(free, 'a-secret-value')
  const generation = await unknown(stuck)
  const { code, json, stdout } = await cli('list', '--state', 'unknown', '--state', 'dead', '--json')
  expect(code).toBe(0)
  expect(json()).toEqual({
    mayBeMore: false,
    records: [
      {
        key: stuck,
        scope: 'tenant',
        state: 'unknown',
        generation: Number(generation),
        attempts: 1,
        live: true,
        leftMs: expect.any(Number),
      },
    ],
  })
  expect(stdout).not.toContain(free)
  const all = await cli('list')
  expect(all.stdout).toMatch(/^STATE +GENERATION +ATTEMPTS +END +SCOPE +OPERATION +KEY\n/)
  expect(all.stdout).toContain(free)
  expect(all.stdout).not.toContain('a-secret-value')
  const [first] = (await cli('list', '--limit', '1', '--json')).json<{ records: object[] }>().records
  expect(first).not.toHaveProperty('outcome')
  expect((await cli('list', '--limit', '1')).stdout).toContain('There may be more')
})

test('show tells a record, and its outcome only when it is asked for', async () => {
  const key = freshKey()
  await done(key, { orderId: 'o-17' })
  const plain = await cli('show', ...named(key), '--json')
  expect(plain.json()).toMatchObject({ record: { key, scope: 'tenant', state: 'done', attempts: 1 } })
  expect(plain.stdout).not.toContain('o-17')
  expect((await cli('show', ...named(key))).stdout).not.toContain('o-17')
  const whole = await cli('show', ...named(key), '--outcome', '--json')
  expect(whole.json()).toMatchObject({ record: { outcome: { kind: 'value', value: { orderId: 'o-17' } } } })
  expect((await cli('show', ...named(key), '--outcome')).stdout).toContain('o-17')
})

test('show of a record that is not there is bad news, not an error', async () => {
  const { code, json } = await cli('show', ...named('never-sent'), '--json')
  expect([code, json()]).toEqual([1, { record: null }])
})

test('an operation is part of the name of a record', async () => {
  const key = freshKey()
  await instance({ store: bench.store }).transaction({ scope: 'tenant', key, operation: 'pay' }, () => 1)
  expect((await cli('show', ...named(key))).code).toBe(1)
  const found = await cli('show', ...named(key), '--operation', 'pay', '--json')
  expect(found.json()).toMatchObject({ record: { operation: 'pay', state: 'done' } })
})

test('release of a record whose owner is alive is refused, and says until when', async () => {
  const key = freshKey()
  const generation = await claimed(key)
  const refused = await cli('release', ...named(key), '--generation', generation)
  expect(refused.code).toBe(1)
  expect(refused.stdout).toMatch(/its owner is alive, the lease ends in \d/)
  const { released, record } = (
    await cli('release', ...named(key), '--generation', generation, '--json')
  ).json<Shown>()
  expect([released, record?.state]).toEqual([false, 'running'])
})

test('release of a record past its lease frees it for the next attempt', async () => {
  const key = freshKey()
  const generation = await claimed(key)
  await expire(bench, key)
  const { code, json } = await cli('release', ...named(key), '--generation', generation, '--json')
  expect(code).toBe(0)
  expect(json<Shown>()).toMatchObject({ released: true, record: { state: 'released' } })
})

test('a verdict on another generation than the one that stands does nothing', async () => {
  const key = freshKey()
  const generation = await unknown(key)
  const older = String(Number(generation) - 1)
  for (const words of [['release'], ['resolve', '--not-done'], ['resolve', '--done', '--value', '1']]) {
    const { code, stdout } = await cli(...words, ...named(key), '--generation', older)
    expect(code).toBe(1)
    expect(stdout).toContain(`another attempt has moved on to generation ${generation} (unknown)`)
  }
  expect((await cli('show', ...named(key), '--json')).json()).toMatchObject({ record: { state: 'unknown' } })
})

test.each(['release', 'resolve'])(
  '%s without a generation is refused before anything is asked',
  async (name) => {
    const { code, json } = await cli(name, ...named('k'), '--json')
    expect([code, json()]).toMatchObject([
      2,
      { error: { code: 'USAGE', message: '--generation is missing' } },
    ])
  },
)

test('resolve as done gives every retry the answer that was found out', async () => {
  const key = freshKey()
  const generation = await unknown(key)
  const words = ['--generation', generation, '--done', '--value', '{"chargeId":"ch-1"}', '--json']
  const { code, json } = await cli('resolve', ...named(key), ...words)
  expect([code, json()]).toMatchObject([0, { resolved: true, record: { state: 'done' } }])
  expect(await bench.sql('select state from retrysafe.intent where key = $1', [key])).toMatchObject({
    rows: [{ state: 3 }],
  })
  const outcome = await cli('show', ...named(key), '--outcome', '--json')
  expect(outcome.json()).toMatchObject({ record: { outcome: { value: { chargeId: 'ch-1' } } } })
})

test('resolve as done takes the reply of an HTTP route, without what belongs to one connection', async () => {
  const key = freshKey()
  const words = [
    '--generation',
    await unknown(key),
    '--done',
    '--status',
    '201',
    '--header',
    'Location: /o/1',
  ]
  const reply = ['--header', 'Set-Cookie: a=b', '--body', '{"orderId":1}']
  expect((await cli('resolve', ...named(key), ...words, ...reply)).code).toBe(0)
  const shown = (await cli('show', ...named(key), '--outcome', '--json')).json<Shown>()
  expect(shown.record?.outcome).toEqual({
    kind: 'reply',
    status: 201,
    headers: [['location', '/o/1']],
    body: '{"orderId":1}',
  })
})

test('resolve as not done lets the next attempt run', async () => {
  const key = freshKey()
  const generation = await unknown(key)
  const { code, json } = await cli(
    'resolve',
    ...named(key),
    '--generation',
    generation,
    '--not-done',
    '--json',
  )
  expect([code, json()]).toMatchObject([0, { resolved: true, record: { state: 'released' } }])
})

test('resolve of a record that is not unknown does nothing', async () => {
  const key = freshKey()
  await done(key, 1)
  const { generation } = (await cli('show', ...named(key), '--json')).json<Shown>().record ?? {}
  const { code, stdout } = await cli(
    'resolve',
    ...named(key),
    '--generation',
    String(generation),
    '--not-done',
  )
  expect(code).toBe(1)
  expect(stdout).toContain('it is done, and only an unknown record')
})

test.each([
  [[], 'say --done or --not-done: one of them'],
  [['--done', '--not-done'], 'say --done or --not-done: one of them'],
  [['--done'], '--done needs the answer: --value or --status, one of them'],
  [
    ['--done', '--value', '1', '--status', '200'],
    '--done needs the answer: --value or --status, one of them',
  ],
  [['--not-done', '--value', '1'], '--not-done has no answer: --value and --status go with --done'],
  [['--done', '--value', 'text'], `--value must be JSON; a text needs its quotes: '"text"'`],
  [['--done', '--status', '200', '--header', 'x'], "--header must be 'Name: value'"],
  [
    ['--done', '--status', '200', '--body', 'a', '--body-file', 'b'],
    '--body and --body-file: pass one of them',
  ],
])('resolve %j is refused before anything is asked', async (words, message) => {
  const { code, json } = await cli('resolve', ...named('k'), '--generation', '1', ...words, '--json')
  expect([code, json()]).toMatchObject([2, { error: { code: 'USAGE', message } }])
})

test('sweep removes what is past its retention and nothing else', async () => {
  const keys = [freshKey(), freshKey(), freshKey()]
  for (const key of keys) await done(key, 1)
  await expire(bench, keys[0] ?? '')
  await expire(bench, keys[1] ?? '')
  expect((await cli('sweep', '--json')).json()).toEqual({ removed: 2 })
  expect((await cli('sweep')).stdout).toBe('Removed 0 records.\n')
  expect((await cli('show', ...named(keys[2] ?? ''))).code).toBe(0)
})
