/** Who may import whom: a wrong arrow is how protocol leaks into adapters. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const src = join(root, 'src')

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, folder, name))
}

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'"`;]*?from\s*'([^']+)'|import\(\s*'([^']+)'\s*\)/g),
  ].map((match) => match[1] ?? match[2] ?? '')
}

/** The room a source file is in: `core`, `stores`, `http`, `testing`, … */
function roomOf(file: string): string {
  const inside = relative(src, file)
  return inside.includes('/') ? (inside.split('/')[0] ?? 'core') : 'core'
}

/** Sources of the package's entry points, as names under `src/`: what a user imports. */
const publicNames = new Set(
  Object.values(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports as object).flatMap(
    (target: string | { default: string }) =>
      typeof target === 'string' ? [] : [target.default.replace('./dist/', '').replace(/\.js$/, '')],
  ),
)

const mayImport: Record<string, (target: { room: string; name: string }) => boolean> = {
  core: ({ room }) => room === 'core',
  stores: ({ room, name }) =>
    room === 'stores' || (room === 'core' && ['store', 'errors', 'outcome', 'clock'].includes(name)),
  http: ({ room }) => room === 'http' || room === 'core',
  // As a user would: whatever it cannot do with these, a user could not do either.
  cli: ({ room, name }) => room === 'cli' || publicNames.has(name),
  testing: () => true,
}

const sources = filesIn('src')

test('there are sources to check', () => {
  expect(sources.length).toBeGreaterThan(20)
})

test.each(sources.map((file) => [relative(root, file), file]))(
  '%s imports only what its room may',
  (_, file) => {
    const room = roomOf(file)
    for (const specifier of importsOf(file)) {
      if (specifier.startsWith('node:')) continue
      expect(specifier, 'the package has no runtime dependency').toMatch(/^\.\.?\//)
      const target = join(dirname(file), specifier).replace(/\.js$/, '.ts')
      const name = relative(src, target).replace(/\.ts$/, '')
      // The public face names what a user imports, wherever it lives.
      if (file === join(src, 'index.ts') && roomOf(target) === 'http') continue
      const allowed = mayImport[room]
      expect(allowed, `room ${room} has rules`).toBeDefined()
      expect(allowed?.({ room: roomOf(target), name }), `${relative(src, file)} → ${name}`).toBe(true)
    }
  },
)

test('the demo and its servers use public names only', () => {
  for (const file of [...filesIn('demo'), ...filesIn('servers')]) {
    for (const specifier of importsOf(file)) {
      expect(specifier, relative(root, file)).not.toMatch(/\/(src|dist)\//)
    }
  }
})

test('only the program of the command line ends the process', () => {
  const ending = sources
    .filter((file) => /\bprocess\.(exit\b|exitCode|kill|abort)/.test(readFileSync(file, 'utf8')))
    .map((file) => relative(src, file))
  expect(ending).toEqual(['cli/main.ts'])
})

test('an adapter holds no word of the protocol', () => {
  for (const adapter of ['express', 'fastify', 'fetch', 'koa', 'hono', 'lambda', 'nest']) {
    const text = readFileSync(join(src, 'http', `${adapter}.ts`), 'utf8')
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    expect(code).not.toMatch(
      /\b(claim|lease|takeOver|fingerprint\(|generation|held|replayed|IN_PROGRESS|KEY_REUSED)\b/,
    )
  }
})
