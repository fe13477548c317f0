/**
 * Interleaved rounds: in each, every contender does a fixed number of operations, one after the other, and is compared with the bare
 * way of the same round. A machine that is slow for a minute is slow for all of them; a single absolute time is never compared.
 */
import { type Spread, spreadOf } from './statistics.js'

/** One side of a comparison: does `operations` operations and says what they took. */
export interface Contender {
  readonly id: string
  run(operations: number): Promise<Measured>
}

export interface Measured {
  readonly ms: number
  /** CPU time, user and system, of the process that does the work: what is left to compare when neighbours take the cores. */
  readonly cpuMs: number
}

export interface Plan {
  readonly rounds: number
  /** What one contender's turn should take, in ms: long enough for hundreds of commits, short enough that all turns of a round see the same machine. */
  readonly turnMs: number
}

export interface Compared {
  readonly id: string
  /** Throughput against the bare way of the same round. */
  readonly ratio: Spread
  /** For context only: what it was on this machine at this hour. */
  readonly perSecond: number
  /** CPU time of the same process per operation, in µs; the database's own is not in it. */
  readonly cpu: Spread
}

/** Runs `bare` against `others`; the answer has `bare` first, with a ratio of 1. */
export async function compare(
  bare: Contender,
  others: readonly Contender[],
  plan: Plan,
): Promise<Compared[]> {
  const contenders = [bare, ...others]
  const operations = new Map<Contender, number>()
  for (const contender of contenders) operations.set(contender, await calibrate(contender, plan.turnMs))
  const samples = contenders.map((contender) => ({
    contender,
    ratio: [] as number[],
    perSecond: [] as number[],
    cpu: [] as number[],
  }))
  for (let round = 0; round < plan.rounds; round += 1) {
    const perMs = new Map<Contender, number>()
    // Everyone is first, last and behind everyone in turn: who runs after a garbage collection or a flush is not always the same.
    for (let place = 0; place < contenders.length; place += 1) {
      const sample = samples[(place + round) % contenders.length]
      if (sample === undefined) continue
      const count = operations.get(sample.contender) ?? 1
      const { ms, cpuMs } = await sample.contender.run(count)
      perMs.set(sample.contender, count / ms)
      sample.cpu.push((cpuMs * 1000) / count)
    }
    const bareRate = perMs.get(bare) ?? Number.NaN
    for (const { contender, ratio, perSecond } of samples) {
      const rate = perMs.get(contender) ?? Number.NaN
      ratio.push(rate / bareRate)
      perSecond.push(rate * 1000)
    }
  }
  return samples.map(({ contender, ratio, perSecond, cpu }) => ({
    id: contender.id,
    ratio: spreadOf(ratio),
    perSecond: spreadOf(perSecond).median,
    cpu: spreadOf(cpu),
  }))
}

/** Warms up, and finds how many operations fill a turn. */
async function calibrate(contender: Contender, turnMs: number): Promise<number> {
  let operations = 32
  for (;;) {
    const { ms } = await contender.run(operations)
    // Half a turn is warm, and long enough to reckon with.
    if (ms >= turnMs / 2) return Math.max(1, Math.round((operations * turnMs) / ms))
    operations *= 2
  }
}

/** Repeats an operation with so many under way at once; what it needs for each is drawn before the clock starts. */
export function repeating<Drawn>(
  id: string,
  concurrency: number,
  draw: () => Drawn,
  operation: (drawn: Drawn) => Promise<unknown>,
): Contender {
  async function run(operations: number): Promise<Measured> {
    const left = Array.from({ length: operations }, draw).values()
    const worker = async () => {
      for (const drawn of left) await operation(drawn)
    }
    const cpuBefore = process.cpuUsage()
    const start = performance.now()
    await Promise.all(Array.from({ length: concurrency }, worker))
    const ms = performance.now() - start
    const { user, system } = process.cpuUsage(cpuBefore)
    return { ms, cpuMs: (user + system) / 1000 }
  }
  return { id, run }
}
