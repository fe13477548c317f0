/** Programs that Debian has: the ones that are installed, or installed here where we may. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Why its tests are skipped; undefined when the program is there. In CI a missing one is an error. */
export function missing(program: string, debian: string): string | undefined {
  if (!existsSync(program) && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) install(debian)
  if (existsSync(program)) return undefined
  const instruction = `no ${program} was found: install it (Debian: apt-get install ${debian})`
  if (process.env.CI) throw new Error(instruction)
  return instruction
}

function install(debian: string): void {
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  try {
    execFileSync('apt-get', ['update'], options)
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', debian], options)
  } catch {
    // Whether it is there now is looked at next.
  }
}
