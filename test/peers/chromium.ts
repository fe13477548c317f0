/** A real Chromium: the one that is installed, or Debian's, installed here where we may. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'

const places = [
  process.env.CHROMIUM ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

const instruction =
  'no Chromium was found: install one (Debian: apt-get install chromium), or name it in the environment variable CHROMIUM'

export type Found = { readonly path: string } | { readonly missing: string }

function installed(): string | undefined {
  return places.find((place) => place !== '' && existsSync(place))
}

/** Where the browser is. In CI a missing one is an error; elsewhere it is the reason why its tests are skipped. */
export function findChromium(): Found {
  if (installed() === undefined && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) install()
  const path = installed()
  if (path !== undefined) return { path }
  if (process.env.CI) throw new Error(instruction)
  return { missing: instruction }
}

function install(): void {
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  try {
    execFileSync('apt-get', ['update'], options)
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], options)
  } catch {
    // Whether it is there now is looked at next.
  }
}

/** Without these Chromium would talk to its maker, and as root it does not start at all. */
const quiet = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A window of its own, with a profile of its own. */
export async function openBrowser(
  path: string,
  options: { readonly javaScriptEnabled: boolean },
): Promise<{ readonly context: BrowserContext; close(): Promise<void> }> {
  const profile = mkdtempSync(join(tmpdir(), 'retrysafe-chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    ...options,
    executablePath: path,
    args: quiet,
    headless: true,
  })
  async function close(): Promise<void> {
    await context.close()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  return { context, close }
}
