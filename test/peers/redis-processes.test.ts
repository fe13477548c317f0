/** Whole calls of four processes on one ledger, and what an owner leaves behind that was killed. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { clientNames } from './processes/redis-clients.js'
import type { Order, Report } from './processes/redis-worker.js'
import { type Bench, openBench } from './redis-bench.js'

const reason = missing(redisProgram, 'redis-server')
const script = fileURLToPath(new URL('../../build/test/peers/processes/redis-worker.js', import.meta.url))

interface Worker {
  readonly child: ChildProcess
  /** Keys whose work it has begun. */
  readonly runs: readonly string[]
  readonly started: Promise<void>
  readonly ends: Promise<Extract<Report, { ends: unknown }>['ends']>
}

function startWorker(order: Order): Worker {
  const child = fork(script, { execArgv: [] })
  const runs: string[] = []
  let begun: () => void = () => undefined
  const started = new Promise<void>((resolve) => {
    begun = resolve
  })
  const ends = new Promise<Extract<Report, { ends: unknown }>['ends']>((resolve, reject) => {
    child.on('message', (report: Report) => {
      if ('ends' in report) return resolve(report.ends)
      runs.push(report.started)
      begun()
    })
    child.on('exit', (code) => reject(new Error(`it ended with code ${code} before it was done`)))
  })
  ends.catch(() => undefined)
  child.send(order)
  return { child, runs, started, ends }
}

describe.skipIf(reason !== undefined).each(clientNames)(
  `processes over %s (${reason ?? 'Redis'})`,
  (client) => {
    let bench: Bench
    let base: Omit<Order, 'keys'>

    beforeAll(async () => {
      bench = await openBench(client)
      base = { client, ports: bench.ports, times: 5, leaseMs: 30_000, stuck: false }
    })

    afterAll(() => bench?.close())

    test('twenty attempts of four processes at each of twenty keys run its work once, and all get its answer', async () => {
      const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`)
      const workers = Array.from({ length: 4 }, () => startWorker({ ...base, keys }))
      const ends = (await Promise.all(workers.map((worker) => worker.ends))).flat()
      expect(ends.filter(({ code }) => code !== undefined)).toEqual([])
      expect(workers.flatMap(({ runs }) => runs).sort()).toEqual([...keys].sort())
      for (const key of keys) {
        const answers = ends.filter((end) => end.key === key)
        expect({ count: answers.length, kinds: new Set(answers.map(({ value }) => value)).size }).toEqual({
          count: 20,
          kinds: 1,
        })
      }
    })

    test('the claim of an owner that was killed is taken over when its lease is over, once', async () => {
      const keys = ['killed']
      const owner = startWorker({ ...base, keys, times: 1, leaseMs: 1000, stuck: true })
      await owner.started
      owner.child.kill('SIGKILL')
      await once(owner.child, 'exit')
      const rivals = Array.from({ length: 3 }, () => startWorker({ ...base, keys, leaseMs: 10_000 }))
      const ends = (await Promise.all(rivals.map((worker) => worker.ends))).flat()
      expect(ends.filter(({ code }) => code !== undefined)).toEqual([])
      expect(new Set(ends.map(({ value }) => value)).size).toBe(1)
      expect(rivals.flatMap(({ runs }) => runs)).toEqual(keys)
    })
  },
)
