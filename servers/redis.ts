/**
 * Real Redis servers of one's own: a single one, or a cluster of three primaries, on free ports of the loopback interface, for as long as the
 * process that started them.
 *
 * A shell that holds the end of a pipe starts each server, and ends it when this process is gone.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Account, chooseAccount, underAccount } from './account.js'
import { freePort } from './postgres.js'

/** Where Debian puts it. */
export const redisProgram = '/usr/bin/redis-server'

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Ends the process as a crash would; what only its memory held is gone. */
  kill(): Promise<void>
  /** Starts it again, on the same port and folder. */
  restart(): Promise<void>
  /** Ends it for good, and removes its data. */
  stop(): Promise<void>
}

export interface RedisOptions {
  /** Whether every write is flushed to the append-only file before it is answered. Default false, as in Redis' own defaults. */
  readonly appendOnly?: boolean
}

export interface RedisCluster {
  readonly servers: readonly RedisServer[]
  readonly ports: readonly number[]
  stop(): Promise<void>
}

/** How long a server may take to answer, and a cluster to agree. */
const startLimitMs = 20_000
const slots = 16_384
const primaries = 3

const keeper = `
"$1" "$2/redis.conf" &
pid=$!
read -r data
kill -KILL "$pid" 2>/dev/null
wait "$pid"
[ "$data" = keep ] || rm -rf "$2"
`

/** @throws Error with what Redis wrote when it does not come up. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return startServer(options.appendOnly ?? false, undefined)
}

/** @throws Error when the servers do not come to one cluster. */
export async function startRedisCluster({ appendOnly = false }: RedisOptions = {}): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: primaries }, async () => {
      const busPort = await freePort()
      return { server: await startServer(appendOnly, busPort), busPort }
    }),
  )
  const servers = nodes.map(({ server }) => server)
  const ports = servers.map(({ port }) => port)

  async function stop(): Promise<void> {
    await Promise.all(servers.map((server) => server.stop()))
  }

  try {
    for (const [index, { server }] of nodes.entries()) {
      const first = Math.ceil((index * slots) / primaries)
      const last = Math.ceil(((index + 1) * slots) / primaries) - 1
      await ask(server.port, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`)
      await ask(server.port, `CLUSTER ADDSLOTSRANGE ${first} ${last}`)
    }
    for (const { server, busPort } of nodes.slice(1))
      await ask(ports[0] ?? 0, `CLUSTER MEET 127.0.0.1 ${server.port} ${busPort}`)
    for (const port of ports) await says(port, 'CLUSTER INFO', /cluster_state:ok[\s\S]*cluster_size:3/)
    return { servers, ports, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function configuration(port: number, folder: string, appendOnly: boolean, busPort?: number): string {
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `dir ${folder}`,
    'daemonize no',
    'save ""',
    `appendonly ${appendOnly ? 'yes' : 'no'}`,
    'appendfsync always',
    `logfile ${join(folder, 'redis.log')}`,
  ]
  if (busPort !== undefined)
    lines.push('cluster-enabled yes', `cluster-port ${busPort}`, 'cluster-node-timeout 5000')
  return `${lines.join('\n')}\n`
}

async function startServer(appendOnly: boolean, busPort: number | undefined): Promise<RedisServer> {
  if (!existsSync(redisProgram)) throw new Error(`there is no ${redisProgram}`)
  const account = chooseAccount()
  const folder = mkdtempSync(join(tmpdir(), 'retrysafe-redis-'))
  const port = await freePort()
  const settings = join(folder, 'redis.conf')
  writeFileSync(settings, configuration(port, folder, appendOnly, busPort), { mode: 0o600 })
  if (account !== undefined) for (const path of [folder, settings]) chownSync(path, account.uid, account.gid)
  let end = run(account, folder)

  async function restart(): Promise<void> {
    end = run(account, folder)
    await says(port, 'PING', /PONG/)
  }

  async function stop(): Promise<void> {
    await end('remove')
    // Killed before, it had kept them.
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await says(port, 'PING', /PONG/)
    return { port, url: `redis://127.0.0.1:${port}`, kill: () => end('keep'), restart, stop }
  } catch (cause) {
    const log = join(folder, 'redis.log')
    const said = existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : ''
    await stop()
    throw new Error(`Redis did not start: ${said}`, { cause })
  }
}

/** Starts the process; what is returned ends it, as a crash would, and keeps or removes its data. */
function run(account: Account | undefined, folder: string): (data: 'keep' | 'remove') => Promise<void> {
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', redisProgram, folder], {
    ...underAccount(account),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.stdin.on('error', () => undefined)
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  return async (data) => {
    child.stdin.end(`${data}\n`)
    await ended
  }
}

/** Asks until the answer fits. */
async function says(port: number, command: string, wanted: RegExp): Promise<void> {
  const deadline = performance.now() + startLimitMs
  for (;;) {
    const answer = await ask(port, command).catch((error: unknown) => String(error))
    if (wanted.test(answer)) return
    if (performance.now() > deadline) throw new Error(`${command} was answered: ${answer}`)
    await wait(20)
  }
}

/** One command in Redis' inline form; the server closes the connection behind it, so that what came is the answer. */
async function ask(port: number, command: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8')
  socket.on('data', (data) => {
    answer += data
  })
  socket.write(`${command}\r\nQUIT\r\n`)
  await once(socket, 'close')
  if (answer.startsWith('-')) throw new Error(`${command} was refused: ${answer}`)
  return answer
}
