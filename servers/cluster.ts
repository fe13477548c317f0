/**
 * A data directory: where it lies, and how it is made exactly once.
 *
 * It is made beside its place, under another name, and renamed when it is whole. So a process that dies in `initdb` leaves a
 * name that nobody takes for a cluster, two processes that begin at once cannot meet in one directory (the second rename
 * fails), and a cluster that exists is never removed.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { type Account, canReach, chooseAccount, underAccount } from './account.js'
import type { Binaries } from './binaries.js'
import { ownFolder, syncDirectory } from './folders.js'
import { isRunning } from './postmaster.js'

/** A place for a cluster, and the account that the cluster belongs to. */
export interface ClusterPlace {
  readonly directory: string
  readonly account: Account | undefined
}

/** Lies in the data directory, which only its owner may read: other users of this machine do not get in. */
const passwordFile = 'retrysafe.password'

/** What a finished cluster of ours holds: PostgreSQL's own two marks, and the password. */
const marks = ['PG_VERSION', join('global', 'pg_control'), passwordFile]

/** Names that `initdb` makes. A directory with nothing else in it never ran: a server leaves `postmaster.opts`. */
const beginnings = /^(base|global|pg_\w+(\.conf)?|PG_VERSION|postgresql(\.auto)?\.conf)$/

function isFinished(directory: string): boolean {
  return marks.every((mark) => existsSync(join(directory, mark)))
}

/** The account that a cluster belongs to, for root; others can only use their own, and PostgreSQL checks that. */
function ownerOf(directory: string): Account | undefined {
  const { uid, gid } = statSync(directory)
  return uid === 0 ? chooseAccount() : { name: `user ${uid}`, uid, gid }
}

/**
 * Decides where the cluster lies: in the directory wanted, or, where the account cannot reach that, below `/var/tmp`, which
 * outlives a reboot, under a name made from the path wanted, so that the next start finds it again.
 */
export function placeCluster(wanted: string, log: (line: string) => void): ClusterPlace {
  mkdirSync(dirname(resolve(wanted)), { recursive: true })
  const parent = realpathSync(dirname(resolve(wanted)))
  const directory = join(parent, basename(resolve(wanted)))
  if (process.getuid?.() !== 0) {
    const found = statSync(directory, { throwIfNoEntry: false })
    if (found === undefined || found.uid === process.getuid?.()) return { directory, account: undefined }
    throw new Error(
      `${directory} belongs to another user. Choose another data directory, or run as that user.`,
    )
  }
  const account = isFinished(directory) ? ownerOf(directory) : chooseAccount()
  if (canReach(account, parent)) return { directory, account }
  const name = createHash('sha256').update(directory).digest('hex').slice(0, 16)
  const elsewhere = join(ownFolder(account, ['/var/tmp']), `cluster-${name}`)
  log(`PostgreSQL runs as ${account?.name} and cannot reach ${directory}; its data is in ${elsewhere}`)
  return { directory: elsewhere, account: isFinished(elsewhere) ? ownerOf(elsewhere) : account }
}

/** Removes what makers that died left beside the place. One on another machine may be alive: its names are not ours to judge. */
function removeAbandoned(directory: string): void {
  const prefix = `${basename(directory)}.new-${hostname()}-`
  for (const name of readdirSync(dirname(directory))) {
    if (!name.startsWith(prefix)) continue
    const maker = Number(name.slice(prefix.length).split('-')[0])
    // An initdb that outlived its maker may still be writing: then this fails, and the next start does it.
    if (!isRunning(maker))
      rmSync(join(dirname(directory), name), { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Makes room for the cluster, or refuses: a directory with files that PostgreSQL did not make is not ours to touch. */
function clearPlace(directory: string, log: (line: string) => void): void {
  if (!existsSync(directory)) return
  const names = readdirSync(directory)
  if (names.length === 0 || isFinished(directory)) return
  if (!names.every((name) => beginnings.test(name))) {
    throw new Error(
      `${directory} holds files, but it is not a database cluster made by this project. ` +
        'Choose another data directory, or move these files away.',
    )
  }
  const aside = `${directory}.unfinished-${Date.now()}`
  renameSync(directory, aside)
  log(`${directory} was left unfinished; it is now ${aside}, and a new one is made`)
}

async function runInitdb(binaries: Binaries, account: Account | undefined, options: string[]): Promise<void> {
  const child = spawn(binaries.initdb, options, {
    ...underAccount(account),
    // English messages for the errors we recognise; TZ spares a search through all time zones.
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk))
  const code = await new Promise<number | null>((done, failed) => {
    child.once('error', failed)
    child.once('close', done)
  })
  if (code === 0) return
  throw new Error(`initdb failed: ${Buffer.concat(output).toString('utf8').trim().slice(-2000)}`)
}

async function makeCluster(place: ClusterPlace, binaries: Binaries, temporary: boolean): Promise<void> {
  const { directory, account } = place
  const beside = `${directory}.new-${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`
  const password = `${beside}-password`
  try {
    mkdirSync(beside, { mode: 0o700 })
    writeFileSync(password, randomBytes(24).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true })
    if (account !== undefined)
      for (const path of [beside, password]) chownSync(path, account.uid, account.gid)
    const options = [
      `--pgdata=${beside}`,
      '--username=postgres',
      `--pwfile=${password}`,
      '--auth=scram-sha-256',
    ]
    // The C locale is the only one that every system has. Only a cluster that does not outlive its test may lie unsynced:
    // PostgreSQL never syncs later what initdb wrote, and a power cut would tear it.
    options.push('--encoding=UTF8', '--locale=C', '--no-instructions', ...(temporary ? ['--no-sync'] : []))
    await runInitdb(binaries, account, options)
    renameSync(password, join(beside, passwordFile))
    if (!temporary) syncDirectory(beside)
    renameSync(beside, directory)
    if (!temporary) syncDirectory(dirname(directory))
  } catch (error) {
    // A rival that was faster put his cluster there: it serves as well.
    if (!isFinished(directory)) throw error
  } finally {
    for (const path of [beside, password]) rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Makes sure that a finished cluster lies in its place, and gives the password of its superuser.
 *
 * @throws Error when the directory holds something else, or a cluster of another major version.
 */
export async function ensureCluster(
  place: ClusterPlace,
  binaries: Binaries,
  { temporary, log }: { temporary: boolean; log: (line: string) => void },
): Promise<string> {
  const { directory } = place
  removeAbandoned(directory)
  if (!isFinished(directory)) {
    clearPlace(directory, log)
    await makeCluster(place, binaries, temporary)
  }
  const version = readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim()
  if (version !== String(binaries.major)) {
    throw new Error(
      `The cluster in ${directory} was made by PostgreSQL ${version}, and the programs found are ${binaries.major}. ` +
        'Move it away or choose another data directory.',
    )
  }
  if ((lstatSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700)
  return readFileSync(join(directory, passwordFile), 'utf8')
}
