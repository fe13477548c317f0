/** Node.js binaries of other majors, from npm: users run 20, 22 and 24. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../../build/nodes')

/** The binary of a major; the running one where it is that, else the npm package of this platform, installed once. */
export async function nodeBinary(major: number): Promise<string> {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const name = `node-${process.platform}-${process.arch}`
  const prefix = join(folder, String(major))
  const binary = join(prefix, 'node_modules', name, 'bin/node')
  if (existsSync(binary)) return binary
  mkdirSync(prefix, { recursive: true })
  const flags = ['--no-save', '--no-audit', '--no-fund', '--prefix', prefix]
  await run('npm', ['install', ...flags, `${name}@${major}`])
  return binary
}
