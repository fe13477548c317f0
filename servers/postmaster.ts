/**
 * The process that serves a data directory: is there one, which, and is it ready.
 *
 * `postmaster.pid` is PostgreSQL's own answer, and it outlives a killed server: after a reboot its number may name any process.
 * So a number counts only if the process behind it is a PostgreSQL of this very directory.
 */
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Account, underAccount } from './account.js'

/** How often a condition is looked at. */
const pollMs = 10

/** What `postmaster.pid` says. */
export interface PidFile {
  readonly pid: number
  readonly port: number
  /** `starting`, `ready`, `stopping`; empty while the file is being written. */
  readonly status: string
}

/** Whether a process exists. A zombie does not: where nobody collects orphans (a container's first process), it stays for ever. */
export function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return process.platform !== 'linux'
  }
}

/** Waits until a condition holds. @throws Error with `problem` after `limitMs`. */
export async function until(condition: () => boolean, limitMs: number, problem: string): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(problem)
    await wait(pollMs)
  }
}

/** The content of `postmaster.pid`; `undefined` where there is none. */
export function readPidFile(directory: string): PidFile | undefined {
  try {
    const lines = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), port: Number(lines[3]), status: (lines[7] ?? '').trim() }
  } catch {
    return undefined
  }
}

function commandLine(pid: number): string[] {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return execFileSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' })
      .trim()
      .split(' ')
  } catch {
    return []
  }
}

function worksIn(pid: number, directory: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(directory)
  } catch {
    return false
  }
}

/** Whether the process is the PostgreSQL of this directory, and not one that got its number later. */
export function servesDirectory(pid: number, directory: string): boolean {
  if (!isRunning(pid)) return false
  const [program = '', ...words] = commandLine(pid)
  if (!/^(postgres|postmaster)\b/.test(basename(program))) return false
  return words.includes(directory) || worksIn(pid, directory)
}

/**
 * Takes away a `postmaster.pid` whose number now belongs to another process; PostgreSQL would take that process for a running
 * server and refuse to start. A server that wrote its own file between the look and this gets it back.
 */
export function removeStalePidFile(directory: string, judged: PidFile): void {
  const file = join(directory, 'postmaster.pid')
  const aside = `${file}.${randomBytes(4).toString('hex')}`
  try {
    renameSync(file, aside)
    if (Number(readFileSync(aside, 'utf8').split('\n')[0]) !== judged.pid) linkSync(aside, file)
    rmSync(aside)
  } catch (error) {
    // Gone already: a rival took it away, and that is what was wanted.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

/** What to start. */
export interface PostmasterCommand {
  readonly program: string
  readonly directory: string
  readonly account: Account | undefined
  readonly port: number
  readonly settings: Readonly<Record<string, string>>
}

/** The server's own log; it grows over many starts and is put aside (one older file is kept) at 16 MiB. */
export function logFileOf(directory: string): string {
  return join(directory, 'retrysafe.log')
}

function openLog(directory: string): { descriptor: number; offset: number } {
  const file = logFileOf(directory)
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size > 16 * 1024 * 1024) renameSync(file, `${file}.1`)
  return { descriptor: openSync(file, 'a', 0o600), offset: size > 16 * 1024 * 1024 ? 0 : size }
}

/**
 * Starts a server that outlives this process, and waits until it accepts connections or has ended.
 *
 * @returns its process id, or what it wrote before it ended.
 */
export async function spawnPostmaster(
  command: PostmasterCommand,
  limitMs: number,
): Promise<{ pid: number } | { failure: string }> {
  const { program, directory, account, port } = command
  const settings = {
    ...command.settings,
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
  }
  const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const { descriptor, offset } = openLog(directory)
  const child = spawn(program, ['-D', directory, ...words], {
    ...underAccount(account),
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', descriptor, descriptor],
  })
  closeSync(descriptor)
  child.unref()
  let ended = ''
  child.once('error', (error) => {
    ended = error.message
  })
  child.once('exit', (code, signal) => {
    ended = `it ended with ${signal ?? `code ${code}`}`
  })
  const isReady = () => {
    const file = readPidFile(directory)
    return file?.pid === child.pid && file?.status === 'ready'
  }
  const log = () => readFileSync(logFileOf(directory)).subarray(offset).toString('utf8').trim()
  await until(() => ended !== '' || isReady(), limitMs, `PostgreSQL is not ready after ${limitMs} ms`)
  if (ended === '' && child.pid !== undefined) return { pid: child.pid }
  return { failure: `${ended}\n${log().slice(-2000)}` }
}
