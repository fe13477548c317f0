/** Makes a module of each example and has one run of the compiler check and build them all, against the built package. */
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Block, root } from './blocks.js'
import { prelude } from './prelude.js'

/**
 * Inside the package, so that `retrysafe` is found as it would be in the reader's project; one for each process, so that two runs in one
 * tree do not take each other's files.
 */
const folder = join(root, 'build/examples', String(process.pid))

/** A module: the imports and global types at the top, the rest in a function that returns what it declared. */
function moduleOf(block: Block): string {
  const imports = [...block.code.matchAll(/^import [^']*'[^'\n]*'$/gm)].map(([text]) => text)
  const globals = block.code.match(/^declare global \{\n.*?^\}\n/gms) ?? []
  const body = block.code
    .replace(/^import [^']*'[^'\n]*'\n/gm, '')
    .replace(/^declare global \{\n.*?^\}\n/gms, '')
  const added = block.from === 'source' ? importsFor(block.code) : []
  const names = block.run === undefined ? [] : declaredIn(body)
  const result = names.length === 0 ? '' : `return { ${names.join(', ')} }\n`
  return `import './prelude.js'\n${[...imports, ...added, ...globals].join('\n')}\nexport async function example() {\n${body}${result}}\n`
}

/** Names declared at the left margin. */
function declaredIn(body: string): string[] {
  return [...body.matchAll(/^(?:const|let|(?:async )?function) (?:(\w+)|\{ ([^}]*) \})/gm)].flatMap(
    ([, name, list]) => (list === undefined ? [name ?? ''] : list.split(',').map((one) => one.trim())),
  )
}

const entries = ['', '/memory', '/postgres', '/express', '/testing'].map((entry) => `retrysafe${entry}`)
const exportsOf = new Map<string, string[]>()
for (const entry of entries) exportsOf.set(entry, Object.keys(await import(entry)))

/** What an example in a source shows is the package's: the name says which entry point. */
function importsFor(code: string): string[] {
  const uses = (name: string) => new RegExp(`(?<![.\\w'])${name}\\(`).test(code)
  const own = entries.flatMap((entry) => {
    const names = exportsOf.get(entry)?.filter(uses) ?? []
    return names.length === 0 ? [] : [`import { ${names.join(', ')} } from '${entry}'`]
  })
  const pg = /\bpg\./.test(code) ? [`import pg from 'pg'`] : []
  const vitest = uses('test.skipIf') ? [`import { test } from 'vitest'`] : []
  return [...own, ...pg, ...vitest]
}

const config = {
  extends: '../../../tsconfig.base.json',
  compilerOptions: {
    rootDir: 'src',
    outDir: 'out',
    noUnusedLocals: false,
    noUnusedParameters: false,
    // NestJS has decorators of parameters.
    experimentalDecorators: true,
  },
  include: ['src'],
}

export interface Compiled {
  /** The compiler's complaints, each with the place of its example; empty when there are none. */
  readonly complaints: string
  /** Runs the example and answers what it declared. */
  run<Declared>(name: string): Promise<Declared>
  /** Removes what was built. */
  remove(): void
}

export async function compile(blocks: readonly Block[]): Promise<Compiled> {
  mkdirSync(join(folder, 'src'), { recursive: true })
  if (blocks.some(({ needsPeers }) => needsPeers))
    symlinkSync(join(root, 'test/peers/node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  writeFileSync(join(folder, 'src/prelude.ts'), prelude)
  for (const [index, block] of blocks.entries()) {
    writeFileSync(join(folder, `src/example-${index}.ts`), moduleOf(block))
  }
  const tsc = join(root, 'node_modules/.bin/tsc')
  const complaints = await promisify(execFile)(tsc, ['-p', folder], { cwd: folder }).then(
    () => '',
    ({ stdout }: { stdout: string }) =>
      stdout.replace(/src\/example-(\d+)\.ts/g, (_, at) => placeOf(blocks, at)),
  )

  async function run<Declared>(name: string): Promise<Declared> {
    const index = blocks.findIndex((block) => block.run === name)
    if (index === -1) throw new Error(`there is no example "${name}"`)
    const module = await import(pathToFileURL(join(folder, `out/example-${index}.js`)).href)
    return module.example()
  }

  return { complaints, run, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

function placeOf(blocks: readonly Block[], index: string): string {
  const block = blocks[Number(index)]
  return block === undefined ? index : `${block.at} `
}
