/** Finds the examples: every ```ts block of the pages and every `@example` of the sources. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Block {
  /** `docs/http.md:22`, to find it again. */
  readonly at: string
  readonly code: string
  /** From `<!-- run: name -->` or `<!-- peers: name -->` before the block. */
  readonly run: string | undefined
  /** Whether it needs what only `test/peers` has. */
  readonly needsPeers: boolean
  /** Examples in sources name what they show without importing it. */
  readonly from: 'page' | 'source'
}

export function pages(): string[] {
  const inDocs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  return ['README.md', 'CONTRIBUTING.md', ...inDocs.sort().map((name) => `docs/${name}`)]
}

export function read(name: string): string {
  return readFileSync(join(root, name), 'utf8')
}

/** The examples that compile with what every clone has, or those that need the packages of `test/peers`. */
export function allBlocks({ needPeers = false } = {}): Block[] {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
  const all = [...pages().flatMap(blocksOfPage), ...sources.flatMap((name) => examplesOf(`src/${name}`))]
  return all.filter(({ needsPeers }) => needsPeers === needPeers)
}

function blocksOfPage(page: string): Block[] {
  const text = read(page)
  return [...text.matchAll(/(?:<!-- (run|peers): (\S+) -->\n)?^```ts\n(.*?)^```$/gms)].map((match) => ({
    at: `${page}:${lineOf(text, match.index)}`,
    code: match[3] ?? '',
    run: match[2],
    needsPeers: match[1] === 'peers',
    from: 'page',
  }))
}

function examplesOf(source: string): Block[] {
  const text = read(source)
  return [...text.matchAll(/^ *\* @example\n *\* ```ts\n(.*?)^ *\* ```$/gms)].map((match) => ({
    at: `${source}:${lineOf(text, match.index)}`,
    code: (match[1] ?? '').replace(/^ *\* ?/gm, ''),
    run: undefined,
    needsPeers: false,
    from: 'source',
  }))
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
