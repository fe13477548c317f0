/** What the pages refer to is there, and each of them answers with something to run. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { allBlocks, pages, read, root } from './blocks.js'

/** Links of a page to files of this repository. */
function linksOf(page: string): string[] {
  return [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target)
}

test('every link of a page leads to a file', () => {
  const broken = pages().flatMap((page) =>
    linksOf(page)
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  )
  expect(broken).toEqual([])
})

test('every page for users has an example that is run', () => {
  const forUsers = [
    'README.md',
    ...pages().filter((page) => /^docs\/(?!api|architecture|dependencies|errors|rules)/.test(page)),
  ]
  const running = [...allBlocks(), ...allBlocks({ needPeers: true })].filter(({ run }) => run !== undefined)
  expect(forUsers.length).toBeGreaterThan(6)
  expect(forUsers.filter((page) => !running.some(({ at }) => at.startsWith(`${page}:`)))).toEqual([])
})

test('every row of docs/failures.md names a test that shows it, or the page that says what to do', () => {
  const rows = read('docs/failures.md')
    .split('\n')
    .filter((line) => /^\| (?!moment|-)/.test(line))
  expect(rows.length).toBeGreaterThan(20)
  expect(rows.filter((row) => !/\]\((\.\.\/test\/|modes\.md)/.test(row))).toEqual([])
})

test('the pages speak of nothing that does not exist', () => {
  const absent = /\b(bullmq|dashboard|safeFetch|downstreamKey|keepInput)\b/i
  const spoken = pages()
    .filter((page) => page.startsWith('docs/') || page === 'README.md')
    .flatMap((page) =>
      read(page)
        .split('\n')
        .filter((line) => absent.test(line))
        .map((line) => `${page}: ${line}`),
    )
  expect(spoken).toEqual([])
})
