/** Makes a copy of the built package that lacks a safeguard, and runs one test on it. */
import { spawn } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Safeguard } from './safeguards.js'

const root = join(import.meta.dirname, '../..')
/** Below the package, so that what the copy imports is found as in the original. */
const build = join(root, 'build/ablation')

/** How the tests of a run ended; `ran` counts those that were not skipped. */
export interface Verdict {
  readonly ran: number
  readonly failed: number
  readonly output: string
}

/** Copies `dist/` and takes the safeguard out; rejects when the source does not fit any more. */
export async function ablated({ patches }: Pick<Safeguard, 'patches'>, name: string): Promise<string> {
  const copy = join(build, name)
  await rm(copy, { recursive: true, force: true })
  await mkdir(build, { recursive: true })
  await cp(join(root, 'dist'), copy, { recursive: true })
  for (const { file, from, to } of patches) {
    const text = await readFile(join(copy, file), 'utf8')
    const found = text.split(from).length - 1
    if (found !== 1) throw new Error(`dist/${file} has ${found} times: ${from}`)
    await writeFile(
      join(copy, file),
      text.replace(from, () => to),
    )
  }
  return copy
}

/** Runs the tests whose names contain one of the parts, on the copy. */
export async function runOn(
  copy: string,
  files: readonly string[],
  parts: readonly string[],
  connectionString: string,
): Promise<Verdict> {
  const report = `${copy}.json`
  const pattern = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST'))
  const child = spawn(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      ...['run', '--project', 'core', '--reporter', 'json', '--outputFile', report],
      ...['--maxWorkers', '1'],
      ...['-t', pattern, ...files],
    ],
    {
      cwd: root,
      env: {
        ...Object.fromEntries(inherited),
        RETRYSAFE_DIST: copy,
        RETRYSAFE_DATABASE: connectionString,
      },
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  await new Promise((resolve) => child.once('close', resolve))
  const { numPassedTests, numFailedTests } = JSON.parse(await readFile(report, 'utf8')) as {
    numPassedTests: number
    numFailedTests: number
  }
  await rm(copy, { recursive: true })
  return { ran: numPassedTests + numFailedTests, failed: numFailedTests, output }
}
