/** As a user gets it: the packed tarball in an empty project, on Node 20, 22 and 24, imported and required. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { nodeBinary } from './nodes.js'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
let project: string

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'retrysafe-user-'))
  const packed = join(project, 'packed')
  mkdirSync(packed)
  // The build is there already; the scripts of a pack would make it anew under running tests.
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', packed], {
    cwd: root,
  })
  const [{ filename }] = JSON.parse(stdout)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'user', private: true }))
  const flags = ['install', '--no-audit', '--no-fund', '--prefix', project]
  await run('npm', [...flags, join(packed, filename), 'pg@8', 'express@5'], { cwd: project })
}, 120_000)

afterAll(() => rmSync(project, { recursive: true, force: true }))

/** What the ten lines leave to the reader, before and after them: who the caller is, the table, and a caller that retries. */
const before = `
const authenticate = (req, res, next) => { req.user = { id: 'alice' }; next() }
`
const after = `
await pool.query('create table orders (id bigserial primary key, customer_id text)')
const server = app.listen(0, '127.0.0.1', async () => {
  const send = () => fetch('http://127.0.0.1:' + server.address().port + '/orders', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'k1' },
    body: JSON.stringify({ customerId: 'c1' }),
  })
  const crowd = await Promise.all(Array.from({ length: 5 }, send))
  const again = await send()
  const { rows } = await pool.query('select count(*)::int as n from orders')
  const first = crowd.filter((one) => one.status === 201 && !one.headers.has('idempotent-replayed')).length
  console.log(JSON.stringify({ orders: rows[0].n, first, replayed: again.headers.get('idempotent-replayed'), status: again.status }))
  server.close()
  server.closeAllConnections()
  await safe.close()
  await pool.end()
})
`
const expected = { orders: 1, first: 1, replayed: 'true', status: 201 }

/** README's first block, on a pool that the script can end. */
function tenLines(): string {
  const [, block = ''] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  expect(block).toContain('postgres(new pg.Pool())')
  return block
    .replace('postgres(new pg.Pool())', 'postgres(pool)')
    .replace(/^const store/m, 'const pool = new pg.Pool()\nconst store')
}

/** The same for a module that requires. */
function required(): string {
  const imports = tenLines().replace(
    /^import (?:(\w+)|(\{[^}]*\})) from ('[^']*')$/gm,
    (_, whole: string | undefined, names: string | undefined, from: string) =>
      `const ${whole ?? names} = require(${from})`,
  )
  return `async function main() {\n${before}${imports}${after}}\nmain()\n`
}

async function inProject(major: number, name: string, text: string): Promise<unknown> {
  const database: FreshDatabase = await freshDatabase()
  try {
    writeFileSync(join(project, name), text)
    const url = new URL(database.connectionString)
    const env = {
      ...process.env,
      PGHOST: url.hostname,
      PGPORT: url.port,
      PGUSER: url.username,
      PGPASSWORD: decodeURIComponent(url.password),
      PGDATABASE: url.pathname.slice(1),
    }
    const { stdout } = await run(await nodeBinary(major), [name], { cwd: project, env })
    return JSON.parse(stdout)
  } finally {
    await database.drop()
  }
}

test.each([20, 22, 24])(
  'the ten lines of README run on Node %i, imported',
  async (major) => {
    expect(await inProject(major, `import-${major}.mjs`, before + tenLines() + after)).toEqual(expected)
  },
  120_000,
)

test.each([20, 22, 24])(
  'the ten lines of README run on Node %i, required',
  async (major) => {
    expect(await inProject(major, `require-${major}.cjs`, required())).toEqual(expected)
  },
  120_000,
)

test('the command line runs in a project that has installed the package', async () => {
  const database: FreshDatabase = await freshDatabase()
  const env = { ...process.env, DATABASE_URL: database.connectionString }
  const program = join(project, 'node_modules/.bin/retrysafe')
  try {
    const { stdout: migrated } = await run(program, ['migrate', '--json'], { cwd: project, env })
    expect(JSON.parse(migrated)).toEqual({ migrated: ['0001_intent'] })
    const { stdout: told } = await run(program, ['doctor', '--json'], { cwd: project, env })
    expect(JSON.parse(told)).toMatchObject({ store: 'postgres' })
  } finally {
    await database.drop()
  }
})

test('the tarball holds what is published and nothing else', async () => {
  const { stdout } = await run('npm', ['pack', '--json', '--dry-run', '--ignore-scripts'], { cwd: root })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const outside = files
    .map(({ path }) => path)
    .filter((path) => !/^(dist|docs)\/|^[A-Z]+(\.md)?$|^package\.json$/.test(path))
  expect(outside).toEqual([])
  expect(files.length).toBeGreaterThan(50)
})
