/** Starts `test/processes/order-server` as a process, talks to it, and reads the ledger of effects. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { postgres } from 'retrysafe/postgres'
import type { Fault, FaultPoint } from 'retrysafe/testing'
import { expect } from 'vitest'

const program = join(import.meta.dirname, '../../build/test/processes/order-server.js')

export interface Service {
  readonly url: string
  readonly process: ChildProcess
  /** Dies at message number `at`, counted from now. */
  arm(at: number, moment: 'before' | 'after'): Promise<void>
  /** Messages since `arm`. */
  count(): Promise<number>
  /** Dies, stops or throws at the next named moment of that name. */
  failAt(name: string, act: FailpointAct): Promise<void>
  /** How often it was reached since `failAt`. */
  hits(): Promise<number>
  /** The next call of the store there fails so. */
  fault(point: FaultPoint, fault: Fault): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
}

export type FailpointAct = 'kill' | 'stop' | 'throw'

export async function startService(
  connectionString: string,
  env: Record<string, string> = {},
): Promise<Service> {
  const child = fork(program, { env: { ...process.env, DATABASE_URL: connectionString, ...env } })
  const { port } = await told<{ port: number }>(child)
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    arm: async (at, moment) => {
      await ask(child, { arm: { at, moment } })
    },
    count: async () => (await ask<{ seen: number }>(child, { count: true })).seen,
    failAt: async (name, act) => {
      await ask(child, { failpoint: { name, act } })
    },
    hits: async () => (await ask<{ hits: number }>(child, { hits: true })).hits,
    fault: async (point, fault) => {
      await ask(child, { fault: { point, fault } })
    },
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill(signal)
      await gone
    },
  }
}

async function ask<Answer>(child: ChildProcess, message: object): Promise<Answer> {
  const answer = told<Answer>(child)
  child.send(message)
  return answer
}

function told<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const hear = (message: unknown) => {
      child.off('exit', end)
      resolve(message as Message)
    }
    const end = (code: number | null, signal: string | null) => {
      child.off('message', hear)
      reject(new Error(`the service ended with ${code ?? signal}`))
    }
    child.once('message', hear)
    child.once('exit', end)
  })
}

export interface Told {
  readonly status: number
  readonly replayed: boolean
  readonly body: string
}

/** One attempt; undefined when nobody can know (the connection broke, or the caller hung up). */
export async function send(
  url: string,
  path: string,
  key: string,
  body: unknown = { a: 1 },
  signal: AbortSignal | null = null,
): Promise<Told | undefined> {
  try {
    const response = await fetch(url + path, {
      method: 'POST',
      signal,
      headers: { 'content-type': 'application/json', 'idempotency-key': key, authorization: 'alice' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, replayed: response.headers.has('idempotent-replayed'), body: text }
  } catch {
    return undefined
  }
}

/** Retries until there is a definite answer; what is not one is 409 and 503 with a wait, or a broken connection. */
export async function sendUntilDefinite(
  url: string,
  path: string,
  key: string,
  body?: unknown,
): Promise<Told> {
  for (let tries = 0; tries < 200; tries += 1) {
    const told = await send(url, path, key, body)
    if (told !== undefined && told.status !== 409 && told.status !== 503) return told
    await new Promise((resume) => setTimeout(resume, 50))
  }
  throw new Error('no definite answer after 200 tries')
}

export interface Ledger {
  readonly pool: pg.Pool
  effects(key: string): Promise<{ payload: string; generation: string }[]>
}

/** The effect table has no unique constraint: one would hide the duplicate that is hunted. */
export async function openLedger(connectionString: string): Promise<Ledger> {
  const pool = new pg.Pool({ connectionString, max: 2 })
  await postgres(pool).migrate()
  await pool.query(
    'create table effects (id bigserial, key text not null, payload text not null, generation bigint not null)',
  )
  return {
    pool,
    effects: async (key) => {
      const { rows } = await pool.query('select payload, generation from effects where key = $1', [key])
      return rows
    },
  }
}

/** What must hold for an intent after all its attempts: one effect, and every definite answer the same. */
export async function expectOneEffect(
  ledger: Ledger,
  key: string,
  answers: readonly (Told | undefined)[],
): Promise<void> {
  const definite = answers.filter((told) => told !== undefined && told.status === 201)
  expect(definite.length).toBeGreaterThan(0)
  expect(new Set(definite.map((told) => told?.body)).size).toBe(1)
  expect(definite.filter((told) => !told?.replayed).length).toBeLessThanOrEqual(1)
  expect(await ledger.effects(key)).toHaveLength(1)
}
