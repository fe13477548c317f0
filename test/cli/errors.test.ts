/** What the command line refuses: stable codes, exit code 2, and no secret in any of it. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cliErrorTable } from '../../dist/cli/errors.js'
import { read } from '../docs/blocks.js'
import { type Bench, openBench } from '../postgres/harness.js'
import { type How, program, retrysafe } from './run.js'

const root = join(import.meta.dirname, '../..')
const modules = join(root, 'build/cli', String(process.pid))
let folder: string
let bench: Bench

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'retrysafe-cli-')))
  bench = await openBench()
})

afterAll(async () => {
  for (const made of [folder, modules]) rmSync(made, { recursive: true, force: true })
  await bench.close()
})

interface Complaint {
  readonly error: { readonly code: string; readonly message: string; readonly advice: string }
}

async function complaint(words: readonly string[], how: How = {}): Promise<Complaint['error']> {
  const { code, json, stderr } = await retrysafe([...words, '--json'], how)
  expect([code, stderr]).toEqual([2, ''])
  return json<Complaint>().error
}

/** A module that makes a store, for `--store`; `retrysafe` is found as in a project that has it installed. */
function moduleOf(name: string, text: string): string {
  mkdirSync(modules, { recursive: true })
  const file = join(modules, `${name}.mjs`)
  writeFileSync(file, text)
  return file
}

test.each([
  [['lsit'], 'USAGE', 'there is no command "lsit"'],
  [['list', '--stat', 'done'], 'USAGE', "Unknown option '--stat'"],
  [['list', 'done'], 'USAGE', 'Unexpected argument'],
  [['list', '--limit', '1e3'], 'USAGE', '--limit must be a whole number'],
  [['show', '--key', 'k'], 'USAGE', '--scope is missing'],
  [['doctor', '--retain', '72'], 'USAGE', '--retain must be a duration'],
  [['doctor', '--horizon', 'nobody'], 'USAGE', '--horizon is a known name'],
  [['doctor', '--horizon', 'toString'], 'USAGE', '--horizon is a known name'],
  [
    ['resolve', '--scope', 's', '--key', 'k', '--generation', '1', '--done', '--value', '1', '--body', 'x'],
    'USAGE',
    'go with --status',
  ],
  [['sql', '--dialect', 'oracle'], 'USAGE', '--dialect is one of'],
  [['sql', '--dialect', 'toString'], 'USAGE', '--dialect is one of'],
  [['sweep', '--url', 'postgres://x', '--store', 'y.js'], 'USAGE', 'name two stores'],
  [['list'], 'STORE_NOT_NAMED', 'no store is named'],
  [['sql'], 'STORE_NOT_NAMED', 'no dialect is named'],
  [['list', '--url', 'mongodb://user:hush@host/x'], 'SCHEME_UNKNOWN', 'of no kind that is known here'],
  [['list', '--url', 'hush'], 'SCHEME_UNKNOWN', 'of no kind that is known here'],
  [['list', '--store', './absent.js'], 'STORE_MODULE_INVALID', 'could not be loaded'],
])('%j is %s', async (words, code, message) => {
  const error = await complaint(words, { cwd: folder })
  expect(error).toMatchObject({ code, message: expect.stringContaining(message), advice: expect.any(String) })
  expect(JSON.stringify(error)).not.toContain('hush')
})

test('docs/cli.md has exactly the codes of the table', () => {
  const told = [...read('docs/cli.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code)
  expect(told).toEqual(Object.keys(cliErrorTable))
})

test('without --json a complaint goes to stderr, with its code and what to do', async () => {
  const { code, stdout, stderr } = await retrysafe(['list'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toBe(`STORE_NOT_NAMED: no store is named\n${cliErrorTable.STORE_NOT_NAMED}\n`)
})

test('a state or a key that cannot be is refused by the package itself', async () => {
  const { connectionString: url } = bench.database
  expect(await complaint(['list', '--state', 'lost'], { url })).toMatchObject({ code: 'OPTION_INVALID' })
  const words = ['show', '--scope', 's', '--key', `k\u0001`]
  expect(await complaint(words, { url })).toMatchObject({ code: 'KEY_INVALID' })
})

test('tables that are missing are named, with the command that brings them', async () => {
  const { connectionString: url } = bench.database
  const error = await complaint(['list', '--schema', 'elsewhere'], { url })
  expect(error.code).toBe('STORE_UNAVAILABLE')
  expect(error.message).toContain('the tables are missing in schema "elsewhere"')
})

test.each(['list', 'migrate', 'sweep'])('%s with a wrong password tells no password', async (name) => {
  const url = new URL(bench.database.connectionString)
  url.password = 'hush hush/@:'
  const error = await complaint([name], { url: url.href })
  expect(error).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('authentication failed'),
  })
  expect(JSON.stringify(error)).not.toMatch(/hush/)
})

test.each([
  'postgres://user:hu%zzsh@127.0.0.1:1/x',
  'postgres://user:hush@127.0.0.1:port/x',
  'postgres://user:hu#sh@127.0.0.1/x',
  'postgres://user:begin@hush/end@127.0.0.1/x',
  'postgres://127.0.0.1:1/x?user=u&password=hush',
])('a URL that leads nowhere is not repeated: case %#', async (url) => {
  for (const words of [
    ['list', '--url', url],
    ['doctor', '--url', url],
    ['doctor', '--url', url, '--json'],
  ]) {
    const { code, stdout, stderr } = await retrysafe(words)
    expect(code).toBe(2)
    expect(stdout + stderr).not.toMatch(/hush|hu%zzsh|hu#sh/)
  }
})

test('a driver that is not installed is named, with the command that installs it', async () => {
  const alone = join(folder, 'alone')
  cpSync(join(root, 'dist'), join(alone, 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(alone, 'package.json'))
  const how = { cwd: alone, program: join(alone, 'dist/cli/main.js') }
  const error = await complaint(['list', '--url', 'postgres://user:hush@127.0.0.1/x'], how)
  expect(error).toMatchObject({
    code: 'DRIVER_MISSING',
    message: 'no driver for this store is installed: looked for pg, postgres',
    advice: expect.stringContaining('npm install pg'),
  })
})

test('postgres.js serves where it is the driver that the project has', async () => {
  const project = join(folder, 'project')
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  cpSync(join(root, 'node_modules/postgres'), join(project, 'node_modules/postgres'), { recursive: true })
  cpSync(join(root, 'dist'), join(project, 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(project, 'package.json'))
  const how = {
    cwd: project,
    program: join(project, 'dist/cli/main.js'),
    url: bench.database.connectionString,
  }
  expect((await retrysafe(['doctor', '--json'], how)).json()).toMatchObject({
    store: 'postgres',
    verdict: 'note',
  })
  expect((await retrysafe(['list', '--json'], how)).json()).toEqual({ records: [], mayBeMore: false })
})

test('any store serves, by a module that exports it or makes it', async () => {
  const made = moduleOf(
    'made',
    `import { memory } from 'retrysafe/memory'\nexport default async () => memory()\nsetInterval(() => {}, 1000)`,
  )
  const listed = await retrysafe(['list', '--store', made, '--json'])
  expect([listed.code, listed.json()]).toEqual([0, { records: [], mayBeMore: false }])
  const seen = await retrysafe(['doctor', '--store', made, '--json'])
  expect([seen.code, seen.json()]).toMatchObject([0, { store: 'memory', verdict: 'warn' }])
  expect((await retrysafe(['doctor', '--store', made, '--strict'])).code).toBe(1)
  expect(await complaint(['migrate', '--store', made])).toMatchObject({ code: 'ABILITY_MISSING' })
  expect(await complaint(['sql', '--store', made])).toMatchObject({ code: 'ABILITY_MISSING' })
})

test('a store without a sweeper is said to have none', async () => {
  const made = moduleOf(
    'unswept',
    `import { memory } from 'retrysafe/memory'\nexport default { ...memory(), sweeping: undefined }`,
  )
  expect(await complaint(['sweep', '--store', made])).toMatchObject({ code: 'ABILITY_MISSING' })
})

test('a module without a store, and one that throws, are told apart from a store that fails', async () => {
  const empty = moduleOf('empty', 'export default { find: 1 }')
  const thrown = moduleOf('thrown', `throw new Error('no configuration')`)
  expect(await complaint(['list', '--store', empty])).toMatchObject({ code: 'STORE_MODULE_INVALID' })
  const error = await complaint(['list', '--store', thrown])
  expect(error.message).toContain('no configuration')
})

test('what fails when nobody waits for it is told like everything else, without a password', async () => {
  const late = moduleOf(
    'late',
    `import { memory } from 'retrysafe/memory'
     const store = memory()
     const never = () => new Promise(() => setTimeout(() => { throw new Error('lost ' + process.env.DATABASE_URL) }, 1))
     export default { ...store, operating: { ...store.operating, list: never } }`,
  )
  const error = await complaint(['list', '--store', late], { url: 'postgres://user:hush@127.0.0.1/x' })
  expect(error).toMatchObject({
    code: 'UNEXPECTED',
    message: expect.stringContaining('lost postgres://user:***@'),
  })
  expect(error.message).not.toContain('hush')
})

test('what fails while the answer is written adds no second document', async () => {
  const slow = moduleOf(
    'slow',
    `import { memory } from 'retrysafe/memory'
     const write = process.stdout.write.bind(process.stdout)
     process.stdout.write = (text, written) => write(text, () => setTimeout(written, 50))
     export default memory()
     export const close = () => { setTimeout(() => { throw new Error('too late') }, 1) }`,
  )
  const { code, json } = await retrysafe(['list', '--store', slow, '--json'])
  expect([code, json()]).toEqual([0, { records: [], mayBeMore: false }])
})

test('a store that never answers is no good news', async () => {
  const silent = moduleOf(
    'silent',
    `import { memory } from 'retrysafe/memory'
     const store = memory()
     export default { ...store, operating: { ...store.operating, list: () => new Promise(() => {}) } }`,
  )
  const error = await complaint(['list', '--store', silent])
  expect(error).toMatchObject({
    code: 'UNEXPECTED',
    message: expect.stringContaining('nothing is left to wait for'),
  })
})

test('the module of docs/cli.md is a store', async () => {
  const [, block = ''] = /```js\n([\s\S]*?)```/.exec(read('docs/cli.md')) ?? []
  const { hostname, port, username, password, pathname } = new URL(bench.database.connectionString)
  const env = {
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
  const file = moduleOf('told', block)
  const migrated = await retrysafe(['migrate', '--store', file, '--json'], { env })
  expect(migrated.json()).toEqual({ migrated: ['0001_intent'] })
  expect((await retrysafe(['list', '--store', file, '--json'], { env })).json()).toMatchObject({
    records: [],
  })
})

test('a reader that has seen enough is no fault', async () => {
  const { stdout } = await promisify(execFile)('/bin/sh', [
    '-c',
    `"${process.execPath}" "${program}" sql --dialect postgres | head -n 1; echo done`,
  ])
  expect(stdout).toBe('begin;\ndone\n')
})

test('help and version are answers, not errors', async () => {
  const help = await retrysafe(['--help'])
  expect(help.code).toBe(0)
  const names = [...help.stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name ?? '')
  expect(names).toContain('doctor')
  for (const name of names) {
    const { code, stdout } = await retrysafe([name, '--help'])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`retrysafe ${name} [options]`)])
  }
  const { version } = JSON.parse(read('package.json'))
  expect((await retrysafe(['--version'])).stdout).toBe(`${version}\n`)
  expect((await retrysafe([])).code).toBe(2)
})
