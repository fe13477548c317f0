/** Exports, files and docs are equal: nothing is exported that is not there, nothing is there that no page tells of. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorTable } from 'retrysafe'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const read = (name: string) => readFileSync(join(root, name), 'utf8')
const manifest = JSON.parse(read('package.json')) as {
  exports: Record<string, { types: string; default: string } | string>
  dependencies?: unknown
}
const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ name, ...target }],
)

test('every entry point has a built file, its types and its source', () => {
  expect(entries.length).toBeGreaterThanOrEqual(5)
  for (const entry of entries) {
    expect(existsSync(join(root, entry.default)), entry.default).toBe(true)
    expect(existsSync(join(root, entry.types)), entry.types).toBe(true)
    const source = entry.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')
    expect(existsSync(join(root, source)), source).toBe(true)
  }
})

test('every entry point has its row in docs/api.md, with every name it exports', async () => {
  const page = read('docs/api.md')
  for (const entry of entries) {
    const specifier = entry.name.replace('.', 'retrysafe')
    const [, section = ''] = page.split(`## \`${specifier}\``)
    expect(section, `docs/api.md has a section ## \`${specifier}\``).not.toBe('')
    const body = section.split('\n## ')[0] ?? ''
    for (const name of Object.keys(await import(specifier))) {
      expect(body, `${specifier} exports ${name}`).toContain(`\`${name}`)
    }
  }
})

test('the published package has no runtime dependency', () => {
  expect(manifest.dependencies).toBeUndefined()
})

test('docs/errors.md has exactly the errors of the table, with their statuses', () => {
  const rows = [...read('docs/errors.md').matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm)].map(
    ([, code, status]) => [code, Number(status)],
  )
  const table = Object.entries(errorTable).map(([code, { status }]) => [code, status])
  expect(rows.sort()).toEqual(table.sort())
})
