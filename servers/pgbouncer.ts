/**
 * PgBouncer in transaction mode, in front of a PostgreSQL server, for as long as the process that started it.
 *
 * Like PostgreSQL it refuses to run as root. A shell that holds the end of a pipe starts it, and stops it when this process is gone.
 */
import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { chooseAccount, underAccount } from './account.js'
import { freePort } from './postgres.js'

/** Where Debian puts it. */
export const pgBouncerProgram = '/usr/sbin/pgbouncer'

export interface PgBouncer {
  readonly port: number
  /** The connection string of the same server and database, through the pooler. */
  through(connectionString: string): string
  stop(): Promise<void>
}

export interface PgBouncerOptions {
  /** Superuser of the server behind it; its name and password are those of the clients too. */
  readonly connectionString: string
  /** Server connections for each database. Default 20. */
  readonly poolSize?: number
}

/** How long it may take to answer its first client. */
const startLimitMs = 20_000

const keeper = `
"$1" -q "$2/pgbouncer.ini" &
pid=$!
read -r line
kill "$pid" 2>/dev/null
wait "$pid"
`

function configuration(target: URL, port: number, folder: string, poolSize: number): string {
  return `[databases]
* = host=${target.hostname} port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${folder}/users.txt
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 1000
logfile = ${folder}/pgbouncer.log
`
}

/** @throws Error with what PgBouncer wrote when it does not come up. */
export async function startPgBouncer({
  connectionString,
  poolSize = 20,
}: PgBouncerOptions): Promise<PgBouncer> {
  if (!existsSync(pgBouncerProgram)) throw new Error(`there is no ${pgBouncerProgram}`)
  const target = new URL(connectionString)
  const account = chooseAccount()
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-pgbouncer-'))
  const port = await freePort()
  const files = {
    'pgbouncer.ini': configuration(target, port, folder, poolSize),
    'users.txt': `"${decodeURIComponent(target.username)}" "${decodeURIComponent(target.password)}"\n`,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 })
  if (account !== undefined)
    for (const name of ['.', ...Object.keys(files)]) chownSync(join(folder, name), account.uid, account.gid)
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', pgBouncerProgram, folder], {
    ...underAccount(account),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))

  function through(of: string): string {
    const url = new URL(of)
    url.port = String(port)
    return url.href
  }

  async function stop(): Promise<void> {
    child.stdin.end()
    await ended
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await answers(through(connectionString))
    return { port, through, stop }
  } catch (cause) {
    const log = join(folder, 'pgbouncer.log')
    const said = existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : ''
    await stop()
    throw new Error(`PgBouncer did not start: ${said}`, { cause })
  }
}

async function answers(connectionString: string): Promise<void> {
  const deadline = performance.now() + startLimitMs
  for (;;) {
    const client = new pg.Client({ connectionString })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('select 1')
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
      await wait(20)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}
