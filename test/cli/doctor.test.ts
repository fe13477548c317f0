/** Every finding of the doctor, provoked on a real PostgreSQL and seen; and a healthy one, of which nothing is to be said. */
import pg from 'pg'
import type { Finding } from 'retrysafe'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { read } from '../docs/blocks.js'
import { type Bench, claimRequest, freshKey, openBench, until } from '../postgres/harness.js'
import { type How, retrysafe } from './run.js'

interface Seen {
  readonly store: string
  readonly verdict: string
  readonly findings: readonly Finding[]
}

/** What the doctor says, with its exit code held against its verdict. */
async function doctor(how: How, ...words: readonly string[]): Promise<Seen> {
  const { code, json, stdout } = await retrysafe(['doctor', '--json', ...words], how)
  expect(stdout).not.toContain(decodeURIComponent(new URL(how.url ?? '').password))
  const seen = json<Seen>()
  expect(code).toBe(seen.verdict === 'error' ? 1 : 0)
  return seen
}

/** Findings that are not good, as `level id`. */
function complaints({ findings }: Seen): readonly string[] {
  return findings.filter(({ level }) => level !== 'ok').map(({ level, id }) => `${level} ${id}`)
}

/** A database in which nothing is to be said against anything, not even against what PostgreSQL does by default. */
async function openHealthy(): Promise<Bench & { readonly how: How; readonly name: string }> {
  const bench = await openBench()
  const name = new URL(bench.database.connectionString).pathname.slice(1)
  await bench.sql(`alter database ${name} set idle_in_transaction_session_timeout = '5min'`)
  await bench.sql(`alter database ${name} set tcp_keepalives_idle = 60`)
  return { ...bench, name, how: { url: bench.database.connectionString } }
}

async function onHealthy(
  look: (bench: Awaited<ReturnType<typeof openHealthy>>) => Promise<void>,
): Promise<void> {
  const bench = await openHealthy()
  try {
    await look(bench)
  } finally {
    await bench.close()
  }
}

/** First cells of the tables of findings. */
const told = new Set(
  [...read('docs/cli.md').matchAll(/^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  ),
)

test('a healthy store is all ok', () =>
  onHealthy(async ({ how }) => {
    const seen = await doctor(how)
    expect(complaints(seen)).toEqual([])
    expect(seen).toMatchObject({ store: 'postgres', verdict: 'ok' })
    expect(seen.findings.map(({ id }) => id)).toEqual([...new Set(seen.findings.map(({ id }) => id))])
    expect(seen.findings.map(({ id }) => id).filter((id) => !told.has(id))).toEqual([])
    const { code, stdout } = await retrysafe(['doctor', '--strict'], how)
    expect([code, stdout]).toEqual([0, expect.stringContaining('postgres: 0 error, 0 warn, 0 note')])
  }))

/** Level and id of a finding, and what provokes it in a database named DB. */
const settings: readonly (readonly [string, string])[] = [
  ['error synchronous-commit', 'alter database DB set synchronous_commit = off'],
  ['error read-only', 'alter database DB set default_transaction_read_only = on'],
  ['note isolation', `alter database DB set default_transaction_isolation = 'serializable'`],
  ['note idle-in-transaction', 'alter database DB set idle_in_transaction_session_timeout = 0'],
  ['note time-limits', `alter database DB set idle_session_timeout = '10min'`],
  ['note keepalives', 'alter database DB set tcp_keepalives_idle = 7200'],
]

test.each(settings)('%s: %s', (complaint, statement) =>
  onHealthy(async ({ sql, name, how }) => {
    await sql(statement.replace('DB', name))
    expect(complaints(await doctor(how))).toEqual([complaint])
  }),
)

const tables: readonly (readonly [readonly string[], string])[] = [
  [['error unique-index'], 'alter table retrysafe.intent drop constraint intent_pkey'],
  [
    ['error unique-index'],
    `alter table retrysafe.intent drop constraint intent_pkey; alter table retrysafe.intent add constraint intent_pkey primary key (key)`,
  ],
  [
    ['error unique-index'],
    `update pg_index set indisvalid = false where indexrelid = 'retrysafe.intent_pkey'::regclass`,
  ],
  [['warn indexes'], 'drop index retrysafe.intent_sweep'],
  [['error logged'], 'alter table retrysafe.intent set unlogged'],
  [['warn collation'], 'alter table retrysafe.intent alter column scope type text collate "default"'],
  [
    ['error collation'],
    `create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
     alter table retrysafe.intent alter column key type text collate loose`,
  ],
  [['error migrations'], 'delete from retrysafe.migration'],
  [['warn migrations'], `insert into retrysafe.migration (name) values ('9999_later')`],
  [['error migrations'], 'drop table retrysafe.intent'],
  [['error migrations'], 'drop schema retrysafe cascade'],
  [['warn bloat'], 'alter table retrysafe.intent set (autovacuum_enabled = false)'],
]

test.each(tables)('%j: %s', (expected, statement) =>
  onHealthy(async ({ sql, how }) => {
    await sql(statement)
    expect(complaints(await doctor(how))).toEqual(expected)
  }),
)

/** Records as their owners left them, `minutes` past their end. */
function plant(
  bench: Bench,
  state: number,
  count: number,
  minutes: number,
  from = 1,
): Promise<pg.QueryResult> {
  return bench.sql(
    `insert into retrysafe.intent (generation, ends_at, state, owner, key, scope, fingerprint, outcome)
      select n, clock_timestamp() - make_interval(mins => $3), $1::smallint, gen_random_uuid(), $1::smallint || '-' || n, 's', '\\x01', '\\x01'
      from generate_series($4::integer, $2::integer) as n`,
    [state, count, minutes, from],
  )
}

test('records that no sweeper removes are counted, and a quarter of an hour is nothing', () =>
  onHealthy(async (bench) => {
    await plant(bench, 3, 5, 15)
    expect(complaints(await doctor(bench.how))).toEqual([])
    await plant(bench, 2, 3, 120)
    const seen = await doctor(bench.how)
    expect(complaints(seen)).toEqual(['warn sweeper'])
    expect(seen.findings.find(({ id }) => id === 'sweeper')?.found).toMatch(
      /^3 records are .* the oldest by 2 h$/,
    )
    expect((await retrysafe(['doctor', '--strict'], bench.how)).code).toBe(1)
  }))

test('records that an owner left unfinished, and those that wait for an operator, are counted', () =>
  onHealthy(async (bench) => {
    await plant(bench, 1, 2, 90)
    await plant(bench, 4, 3, -60)
    await plant(bench, 5, 1, -60)
    const seen = await doctor(bench.how)
    expect(complaints(seen)).toEqual(['note left-lying', 'warn unknown-records', 'warn dead-records'])
    const found = new Map(seen.findings.map((one) => [one.id, one.found]))
    expect(found.get('left-lying')).toContain('2 records are unfinished')
    expect([found.get('unknown-records'), found.get('dead-records')]).toEqual(['3 unknown', '1 dead'])
    expect(complaints(await doctor(bench.how, '--skip-records'))).toEqual(['note left-lying'])
    await bench.sql(`update retrysafe.intent set generation = generation + 5000 where state = 4`)
    await plant(bench, 4, 1200, -60, 5)
    const many = new Map((await doctor(bench.how)).findings.map((one) => [one.id, one.found]))
    expect([many.get('unknown-records'), many.get('dead-records')]).toEqual([
      '1000 or more unknown',
      '1 dead',
    ])
  }))

test('rows that vacuum cannot remove are seen as bloat', () =>
  onHealthy(async (bench) => {
    const old = new pg.Client({ connectionString: bench.database.connectionString })
    old.on('error', () => undefined)
    await old.connect()
    // What it may still see cannot be vacuumed away, however soon autovacuum comes.
    await old.query('begin isolation level repeatable read; select 1')
    await plant(bench, 3, 20_000, -60)
    await bench.sql('delete from retrysafe.intent')
    const dead = `select n_dead_tup from pg_stat_all_tables where schemaname = 'retrysafe' and relname = 'intent'`
    await until(async () => Number((await bench.sql(dead)).rows[0].n_dead_tup) >= 20_000)
    const seen = await doctor(bench.how)
    await old.end()
    expect(complaints(seen)).toEqual(['warn bloat'])
    expect(seen.findings.find(({ id }) => id === 'bloat')?.found).toMatch(/^20000 dead rows to 0 live ones/)
  }))

/** A role of its own, and the URL by which it comes. */
async function roleIn(
  bench: Bench,
  ...grants: readonly string[]
): Promise<{ how: How; drop(): Promise<void> }> {
  const role = `role_${freshKey().replaceAll('-', '_')}`
  await bench.sql(`create role ${role} login password 'hush'`)
  for (const grant of grants) await bench.sql(`${grant} to ${role}`)
  const url = new URL(bench.database.connectionString)
  url.username = role
  url.password = 'hush'
  return {
    how: { url: url.href },
    drop: async () => {
      await bench.sql(`drop owned by ${role}; drop role ${role}`)
    },
  }
}

const usage = 'grant usage on schema retrysafe'
const working = 'grant select, insert, update, delete on retrysafe.intent'

test.each([
  [[usage, working], ['note migrations'], ''],
  [
    [usage, 'grant select, insert, update on retrysafe.intent'],
    ['note migrations', 'error rights'],
    'lacks DELETE',
  ],
  [[working], ['note migrations', 'error rights'], 'lacks USAGE on the schema'],
  [[], ['note migrations', 'error rights'], 'lacks USAGE on the schema, SELECT, INSERT, UPDATE, DELETE'],
])('a role that was given %j', async (grants, expected, found) => {
  await onHealthy(async (bench) => {
    const role = await roleIn(bench, ...grants)
    const seen = await doctor(role.how)
    await role.drop()
    expect(complaints(seen)).toEqual(expected)
    expect(seen.findings.find(({ id }) => id === 'rights')?.found).toContain(found)
    expect(JSON.stringify(seen)).not.toContain('hush')
  })
})

test('a policy that hides records from the role is an error', () =>
  onHealthy(async (bench) => {
    const role = await roleIn(bench, usage, working)
    await bench.sql('alter table retrysafe.intent enable row level security')
    const seen = await doctor(role.how)
    await role.drop()
    expect(complaints(seen)).toEqual(['note migrations', 'error row-security'])
  }))

test('what the server refuses to answer is told, and the rest is looked at', () =>
  onHealthy(async (bench) => {
    const role = await roleIn(bench, usage, working, 'grant select on retrysafe.migration')
    await bench.sql('revoke select on pg_stat_all_tables from public')
    const seen = await doctor(role.how)
    await role.drop()
    expect(complaints(seen)).toEqual(['note upkeep'])
    expect(seen.findings.find(({ id }) => id === 'upkeep')?.found).toContain('42501')
  }))

/** Starts the program with a clock that is off by so much. */
function clockOff(byMs: number): Readonly<Record<string, string>> {
  const shift = `const real = Date.now; Date.now = () => real() + ${byMs}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}` }
}

test('clocks that are apart are told by how far', () =>
  onHealthy(async ({ how }) => {
    expect(complaints(await doctor({ ...how, env: clockOff(60_000) }))).toEqual(['warn clock'])
    const far = await doctor({ ...how, env: clockOff(-3_700_000) })
    expect(complaints(far)).toEqual(['error clock'])
    expect(far.findings.find(({ id }) => id === 'clock')?.found).toBe(
      `the server's clock is 1 h ahead of this machine's`,
    )
  }))

test('a database that is not in UTF8 is told', async () => {
  const bench = await openHealthy()
  const url = new URL(bench.database.connectionString)
  url.pathname = `${bench.name}_ascii`
  try {
    await bench.sql(`create database ${bench.name}_ascii template template0 encoding 'SQL_ASCII' locale 'C'`)
    expect(complaints(await doctor({ url: url.href }))).toContain('warn encoding')
  } finally {
    await bench.sql(`drop database if exists ${bench.name}_ascii with (force)`)
    await bench.close()
  }
})

describe('retention against those who retry', () => {
  let bench: Awaited<ReturnType<typeof openHealthy>>
  beforeAll(async () => {
    bench = await openHealthy()
  })
  afterAll(() => bench.close())

  test.each([
    [['--horizon', 'stripe'], ['error retention']],
    [['--horizon', 'stripe', '--retain', '72h'], []],
    [['--horizon', 'standard-webhooks', '--retain', '3d'], ['error retention']],
    [['--horizon', 'app=90min', '--horizon', 'queue=4d', '--retain', '24h'], ['error retention']],
  ])('%j', async (words, expected) => {
    expect(complaints(await doctor(bench.how, ...words))).toEqual(expected)
  })
})

test('a store that cannot be asked is exit code 2, and a finding all the same', async () => {
  const { code, json } = await retrysafe(['doctor', '--json'], { url: 'postgres://user:hush@127.0.0.1:1/x' })
  expect([code, json()]).toMatchObject([
    2,
    { store: 'postgres', verdict: 'unknown', findings: [{ id: 'reachable', level: 'error' }] },
  ])
})

test('the doctor changes nothing and holds nothing', () =>
  onHealthy(async (bench) => {
    const key = freshKey()
    await bench.store.claim(claimRequest(key))
    const rows = async () => (await bench.sql('select xmin, i.* from retrysafe.intent i')).rows
    const before = await rows()
    expect(JSON.stringify(await doctor(bench.how))).not.toContain(key)
    expect(await rows()).toEqual(before)
  }))
