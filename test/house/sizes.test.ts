/** Sizes that keep a file one idea (house rules): a file that breaks them wants a second idea moved out, not a second half. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

function linesOf(folder: string): Map<string, number> {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  const sources = names.filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
  return new Map(
    sources.map((name) => [
      `${folder}/${name}`,
      readFileSync(join(root, folder, name), 'utf8').split('\n').length,
    ]),
  )
}

test('no file has more than 400 lines', () => {
  const long = ['src', 'demo', 'servers', 'test'].flatMap((folder) =>
    [...linesOf(folder)].filter(([, lines]) => lines > 400),
  )
  expect(long).toEqual([])
})

test('the median source file has at most 110 lines', () => {
  const sizes = [...linesOf('src').values()].sort((a, b) => a - b)
  expect(sizes[Math.floor(sizes.length / 2)]).toBeLessThanOrEqual(110)
})

/** Every `function` with the lines that are its own: those of functions inside it are counted there. */
function functionsOf(name: string): { at: string; own: number }[] {
  const lines = readFileSync(join(root, name), 'utf8').split('\n')
  const found = lines.flatMap((line, from) => {
    const start = /^(\s*)(?:export )?(?:default )?(?:async )?function\b/.exec(line)
    if (start === null) return []
    const to = lines.findIndex((later, at) => at > from && later === `${start[1]}}`)
    return [{ at: `${name}:${from + 1}`, from, to, length: to - from + 1 }]
  })
  return found.map((outer) => {
    const inside = found.filter((inner) => inner.from > outer.from && inner.to < outer.to)
    const direct = inside.filter(
      (inner) => !inside.some((other) => other.from < inner.from && other.to > inner.to),
    )
    return { at: outer.at, own: outer.length - direct.reduce((sum, { length }) => sum + length, 0) }
  })
}

test('no function has more than 70 lines of its own', () => {
  const all = [...linesOf('src').keys()].flatMap(functionsOf)
  expect(all.length).toBeGreaterThan(100)
  expect(all.filter(({ own }) => own > 70)).toEqual([])
})
