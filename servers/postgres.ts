/**
 * A PostgreSQL server on this machine's loopback, in a data directory of its own.
 *
 * The server outlives the process that started it: a killed owner's successor finds it, proves by the password that it is
 * the one, and goes on with it. Nothing here rests on a lock file of ours: the rename that makes a cluster and PostgreSQL's
 * own guard of its data directory decide who was first, and the loser takes the winner's server.
 */
import { realpathSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { type Binaries, type BinarySource, findBinaries } from './binaries.js'
import { type ClusterPlace, ensureCluster, placeCluster } from './cluster.js'
import {
  isRunning,
  logFileOf,
  readPidFile,
  removeStalePidFile,
  servesDirectory,
  spawnPostmaster,
  until,
} from './postmaster.js'

export { installedPostgres } from './binaries.js'

/** `fast` rolls back what runs and writes a checkpoint; `immediate` stops dead, and the next start recovers. */
export type StopMode = 'fast' | 'immediate'

export interface PostgresOptions {
  /** Made if absent. Where the account of the server cannot reach it, another is used, and `log` says which. */
  readonly dataDirectory: string
  /** 0 or absent: a free one. */
  readonly port?: number
  /** Server settings, as in `postgresql.conf`. A server that is adopted keeps those it was started with. */
  readonly settings?: Readonly<Record<string, string>>
  /** Told in one line what the caller should know: an adopted server, another data directory. */
  readonly log?: (line: string) => void
  /** Default `embedded`. */
  readonly binaries?: BinarySource
  /** The cluster need not survive a power cut: its making is not synced to disk. Default false. */
  readonly temporary?: boolean
}

export interface PostgresServer {
  readonly port: number
  /** Superuser, database `postgres`, loopback. It holds the password: do not print it. */
  readonly connectionString: string
  /** Of the postmaster; `undefined` while it does not run. */
  readonly pid: number | undefined
  /** Where the data is. */
  readonly dataDirectory: string
  /** What the server wrote. */
  readonly logFile: string
  /** Default `fast`. Returns when the process is gone; a server that does not run is no error. */
  stop(mode?: StopMode): Promise<void>
  /** SIGKILL to the postmaster. */
  kill(): Promise<void>
  /** On the same port; adopts a server that runs. */
  start(): Promise<void>
  restart(mode?: StopMode): Promise<void>
  /** Creates a database, if it is not there, and gives its connection string. */
  createDatabase(name: string): Promise<string>
}

/** Enough for many small pools, in memory that a laptop does not miss; durable as delivered (fsync stays on). */
const defaultSettings = {
  shared_buffers: '64MB',
  max_connections: '200',
  log_min_messages: 'warning',
  timezone: 'UTC',
}

/** A crash recovery replays at most `max_wal_size` (1 GB), which takes seconds; a minute is a server that hangs. */
const startLimitMs = 60_000
/** Fast shutdown waits for a checkpoint. After this it is stopped dead, which is as safe and only costs a recovery. */
const stopLimitMs = 30_000

function isFree(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const probe = createServer()
    probe.once('error', () => answer(false))
    probe.listen({ port, host: '127.0.0.1' }, () => probe.close(() => answer(true)))
  })
}

/**
 * A free port below the range from which kernels draw the ports of outgoing connections (32768 and up): one from that range
 * could be taken by a client's connection while the server restarts, even by its own attempt to reach the server.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = 15_000 + Math.floor(Math.random() * 17_000)
    if (await isFree(port)) return port
  }
  throw new Error(
    'No free port was found on 127.0.0.1 between 15000 and 32000. Give one in the option `port`.',
  )
}

function connectionStringFor(password: string, port: number, database: string): string {
  return `postgresql://postgres:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`
}

async function query(connectionString: string, text: string): Promise<Record<string, unknown> | undefined> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 })
  // Without a listener a connection that breaks (a server stopped meanwhile) would end this process.
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows[0]
  } finally {
    await client.end().catch(() => {})
  }
}

/** Whether the server at the port is the one of this directory: it knows the password and names the directory. */
async function answersFor(directory: string, connectionString: string): Promise<boolean> {
  const row = await query(connectionString, `select current_setting('data_directory') as directory`)
  return typeof row?.directory === 'string' && realpathSync(row.directory) === realpathSync(directory)
}

interface Launch {
  readonly place: ClusterPlace
  readonly binaries: Binaries
  readonly password: string
  readonly port: number | undefined
  readonly settings: Readonly<Record<string, string>>
}

/** Takes over a server that runs already; `undefined` if it is on its way out. */
async function adopt(launch: Launch): Promise<{ pid: number; port: number } | undefined> {
  const { directory } = launch.place
  const isSettled = () => {
    const now = readPidFile(directory)
    return now === undefined || now.status === 'ready' || !servesDirectory(now.pid, directory)
  }
  await until(
    isSettled,
    startLimitMs,
    `The PostgreSQL in ${directory} neither starts nor stops. See ${logFileOf(directory)}`,
  )
  const file = readPidFile(directory)
  if (file === undefined || file.status !== 'ready' || !servesDirectory(file.pid, directory)) return undefined
  if (launch.port !== undefined && launch.port !== file.port) {
    throw new Error(
      `${directory} is already served on port ${file.port} (process ${file.pid}), not ${launch.port}. ` +
        'Stop that server, or leave the port out to use it.',
    )
  }
  try {
    if (await answersFor(directory, connectionStringFor(launch.password, file.port, 'postgres'))) return file
  } catch (error) {
    // It may have begun to stop after the look; if not, it is alive and refuses us.
    if (readPidFile(directory)?.status === 'ready' && isRunning(file.pid)) throw error
    return undefined
  }
  throw new Error(
    `The server on port ${file.port} is not the one of ${directory}. Choose another data directory.`,
  )
}

/** Starts a server, or adopts the one that runs. Every way to lose a race leads to another look. */
async function launchServer(launch: Launch): Promise<{ pid: number; port: number; adopted: boolean }> {
  const { place, binaries } = launch
  const deadline = performance.now() + startLimitMs
  let failure = ''
  while (performance.now() < deadline) {
    const file = readPidFile(place.directory)
    if (file !== undefined && servesDirectory(file.pid, place.directory)) {
      const found = await adopt(launch)
      if (found !== undefined) return { pid: found.pid, port: found.port, adopted: true }
      continue
    }
    if (file !== undefined && isRunning(file.pid)) removeStalePidFile(place.directory, file)
    const port = launch.port ?? (await freePort())
    const command = { program: binaries.postgres, ...place, port, settings: launch.settings }
    const started = await spawnPostmaster(command, startLimitMs)
    if ('pid' in started) return { pid: started.pid, port, adopted: false }
    failure = started.failure
    if (/Address already in use|could not bind/.test(failure)) {
      if (launch.port === undefined) continue
      throw new Error(
        `Port ${port} on 127.0.0.1 is taken. Give another one, or none, in the option \`port\`.`,
      )
    }
    // A rival was faster, or the backends of a killed server have not noticed yet that it is gone.
    if (!/lock file "postmaster.pid"|shared memory block/.test(failure)) break
    await wait(50)
  }
  throw new Error(`PostgreSQL did not start in ${place.directory}: ${failure}`)
}

async function endProcess(pid: number, directory: string, mode: StopMode): Promise<void> {
  const isGone = () => !servesDirectory(pid, directory)
  if (isGone()) return
  process.kill(pid, mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
  try {
    await until(isGone, stopLimitMs, `PostgreSQL (process ${pid}) did not stop`)
  } catch (error) {
    if (mode === 'immediate') throw error
    await endProcess(pid, directory, 'immediate')
  }
}

/** Finds the programs, the account and the place, and makes the cluster if there is none. */
async function prepare(options: PostgresOptions): Promise<Launch> {
  const log = options.log ?? (() => {})
  if (process.platform === 'win32') {
    throw new Error(
      'The embedded PostgreSQL is not run on Windows. Set DATABASE_URL to a server of your own.',
    )
  }
  const place = placeCluster(options.dataDirectory, log)
  const binaries = findBinaries(options.binaries ?? 'embedded', place.account)
  const password = await ensureCluster(place, binaries, { temporary: options.temporary ?? false, log })
  const port = options.port === 0 ? undefined : options.port
  return { place, binaries, password, port, settings: { ...defaultSettings, ...options.settings } }
}

/**
 * Starts PostgreSQL in a data directory, which is made if it is absent, or adopts the server that runs there.
 *
 * @throws Error that says what to do: no programs for this platform, no unprivileged account, a taken port, a directory that
 * holds something else.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const launch = await prepare(options)
  const { password } = launch
  const { directory } = launch.place
  const first = await launchServer(launch)
  const { port } = first
  if (first.adopted) {
    options.log?.(`PostgreSQL was still running (process ${first.pid}, port ${port}); it is used again`)
  }
  let last = first.pid

  // The last one known too: a server whose directory was removed under it still runs for up to a minute.
  const current = () =>
    [readPidFile(directory)?.pid ?? 0, last].find((pid) => servesDirectory(pid, directory))

  async function stop(mode: StopMode = 'fast'): Promise<void> {
    const pid = current()
    if (pid !== undefined) await endProcess(pid, directory, mode)
  }
  async function kill(): Promise<void> {
    const pid = current()
    if (pid === undefined) return
    process.kill(pid, 'SIGKILL')
    await until(() => !servesDirectory(pid, directory), stopLimitMs, `Process ${pid} did not die of SIGKILL`)
  }
  async function start(): Promise<void> {
    last = (await launchServer({ ...launch, port })).pid
  }
  async function restart(mode: StopMode = 'fast'): Promise<void> {
    await stop(mode)
    await start()
  }
  async function createDatabase(name: string): Promise<string> {
    try {
      await query(
        connectionStringFor(password, port, 'postgres'),
        `create database ${pg.escapeIdentifier(name)}`,
      )
    } catch (error) {
      // 42P04: it is there. 23505: somebody creates it at this moment, and has committed it when this is raised.
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code !== '42P04' && code !== '23505') throw error
    }
    return connectionStringFor(password, port, name)
  }

  return {
    port,
    connectionString: connectionStringFor(password, port, 'postgres'),
    get pid() {
      return current()
    },
    dataDirectory: directory,
    logFile: logFileOf(directory),
    stop,
    kill,
    start,
    restart,
    createDatabase,
  }
}
