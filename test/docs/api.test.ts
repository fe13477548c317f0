/** docs/api.md tells of every exported name, types included, and of none that is not exported. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read } from './blocks.js'

const manifest = JSON.parse(read('package.json')) as { exports: Record<string, { types?: string } | string> }
const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'object' && target.types !== undefined
    ? [{ name: join('retrysafe', name), types: target.types }]
    : [],
)

function exportedBy(types: string): Set<string> {
  const text = read(types)
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) =>
    [...list.matchAll(/(\w+)\s*(?:,|$)/g)].map(([, name = '']) => name),
  )
  const declared = [...text.matchAll(/^export (?:declare )?(?:function|const|interface|type|class) (\w+)/gm)]
  return new Set([...listed, ...declared.map(([, name = '']) => name)])
}

/** The first column of each table whose header says `name`. */
function toldOf(section: string): Set<string> {
  const [table = ''] = section.split('| name |').slice(1)
  const [rows = ''] = table.split('\n\n')
  const cells = [...rows.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell = '']) => [
    ...cell.matchAll(/`(\w+)/g),
  ])
  return new Set(cells.map(([, name = '']) => name))
}

test.each(entries)('docs/api.md has exactly the names of $name', ({ name, types }) => {
  const [, section = ''] = read('docs/api.md').split(`## \`${name}\`\n`)
  const [body = ''] = section.split('\n## ')
  expect([...toldOf(body)].sort()).toEqual([...exportedBy(types)].sort())
})
