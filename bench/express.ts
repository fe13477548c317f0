/** Express end to end: the service in one process, its callers in another, keep-alive connections between them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Caller, openCaller } from './caller.js'
import { uuidKey } from './keys.js'
import { type Compared, type Contender, compare, type Plan } from './rounds.js'

/** Callers, and connections to the database. */
export const expressConnections = 16

const body = JSON.stringify({ customerId: 'customer-000017', totalCents: 4200 })

export async function compareExpress(connectionString: string, plan: Plan): Promise<Compared[]> {
  const program = join(import.meta.dirname, 'express-server.js')
  const env = { ...process.env, DATABASE_URL: connectionString, CONNECTIONS: String(expressConnections) }
  // Its own flags only: a profiler of ours must not run there as well.
  const child = fork(program, { env, execArgv: [] })
  try {
    const { port = 0 } = await heard(child)
    const callers = await Promise.all(Array.from({ length: expressConnections }, () => openCaller(port)))
    try {
      const contender = (id: string, head: () => string) => expressContender(id, child, callers, head)
      return await compare(
        contender('express-bare', () => '/bare HTTP/1.1'),
        [contender('express', () => `/safe HTTP/1.1\r\nidempotency-key: ${uuidKey()}`)],
        plan,
      )
    } finally {
      for (const caller of callers) caller.close()
    }
  } finally {
    if (child.exitCode === null) {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}

function expressContender(
  id: string,
  child: ChildProcess,
  callers: readonly Caller[],
  head: () => string,
): Contender {
  async function run(operations: number) {
    const heads = Array.from({ length: operations }, head).values()
    const cpuBefore = await cpuMs(child)
    const start = performance.now()
    await Promise.all(
      callers.map(async (caller) => {
        for (const drawn of heads) {
          const status = await caller.post(drawn, body)
          if (status !== 201) throw new Error(`${id} answered ${status}`)
        }
      }),
    )
    const ms = performance.now() - start
    return { ms, cpuMs: (await cpuMs(child)) - cpuBefore }
  }
  return { id, run }
}

async function cpuMs(child: ChildProcess): Promise<number> {
  const answer = heard(child)
  child.send('cpu')
  return (await answer).cpuMs ?? 0
}

function heard(child: ChildProcess): Promise<{ port?: number; cpuMs?: number }> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error('the Express service ended'))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message as { port?: number; cpuMs?: number })
    })
  })
}
