/**
 * A MariaDB server, in a fresh folder, for as long as the process that started it.
 *
 * Like PostgreSQL it is not run as root: a shell that holds the end of a pipe starts it, and kills it when this process is gone. `kill` and `start` leave the
 * data, so that a test can see what a crash leaves.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Account, chooseAccount, underAccount } from './account.js'
import { freePort } from './postgres.js'

/** Where Debian puts it. */
export const mariadbProgram = '/usr/sbin/mariadbd'
const installProgram = '/usr/bin/mariadb-install-db'

export interface Mariadb {
  /** Of an account that may do everything, without a password: the server listens on loopback only. */
  readonly url: string
  /** Ends the server at once, as a crash would. */
  kill(): Promise<void>
  /** Starts it again, on the same data and port. */
  start(): Promise<void>
  /** Ends it for good and removes its data. */
  stop(): Promise<void>
}

/** How long it may take to listen, after a crash too. */
const startLimitMs = 30_000

/** Told `keep` it leaves the data; when nobody tells it anything any more, it does not. */
const keeper = `
exec 3<&0
data="$1"; shift
"$@" &
pid=$!
(
  read -r line
  kill -KILL "$pid" 2>/dev/null
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  [ "$line" = keep ] || rm -rf "$data" 2>/dev/null
) <&3 &
wait "$pid"
`

/** @throws Error with what the server wrote when it does not come up. */
export async function startMariadb(options: readonly string[] = []): Promise<Mariadb> {
  if (!existsSync(mariadbProgram)) throw new Error(`there is no ${mariadbProgram}`)
  const account = chooseAccount()
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-mariadb-'))
  const data = join(folder, 'data')
  mkdirSync(data)
  chmodSync(folder, 0o711)
  if (account !== undefined) chownSync(data, account.uid, account.gid)
  const port = await freePort()
  let running: { child: ChildProcess; ended: Promise<void> } | undefined

  async function start(): Promise<void> {
    running = launch(data, port, account, options)
    await listens(port, data)
  }

  async function kill(): Promise<void> {
    running?.child.stdin?.end('keep\n')
    await running?.ended
    running = undefined
  }

  async function stop(): Promise<void> {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    install(data, account)
    await start()
    return { url: `mysql://root@127.0.0.1:${port}`, kill, start, stop }
  } catch (cause) {
    const said = logOf(data)
    await stop()
    throw new Error(`MariaDB did not start: ${String(cause)}\n${said}`, { cause })
  }
}

/** @throws Error with what it wrote. */
function install(data: string, account: Account | undefined): void {
  const options = [
    `--datadir=${data}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--innodb-use-native-aio=OFF',
  ]
  const { status, stdout, stderr } = spawnSync(installProgram, ['--no-defaults', ...options], {
    ...underAccount(account),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${installProgram} failed: ${stderr}${stdout}`.slice(0, 4000))
}

function launch(data: string, port: number, account: Account | undefined, options: readonly string[]) {
  const server = [
    mariadbProgram,
    '--no-defaults',
    `--datadir=${data}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${data}/socket`,
    `--pid-file=${data}/pid`,
    `--log-error=${data}/log`,
    '--max-connections=400',
    '--skip-name-resolve',
    '--innodb-use-native-aio=OFF',
    ...options,
  ]
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', data, ...server], {
    ...underAccount(account),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  return { child, ended: new Promise<void>((done) => child.once('exit', () => done())) }
}

async function listens(port: number, data: string): Promise<void> {
  const deadline = performance.now() + startLimitMs
  while (!(await greets(port))) {
    if (performance.now() > deadline) throw new Error(logOf(data))
    await wait(20)
  }
}

/** The server speaks first; until it is up, nobody does. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (up: boolean) => {
      socket.destroy()
      resolve(up)
    }
    socket.once('data', () => end(true))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
  })
}

function logOf(data: string): string {
  const log = join(data, 'log')
  return existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : ''
}
