/** One run: everything that is measured, in the order in which it disturbs the least. */
import { bytesOf, type KeyBytes } from './bytes.js'
import { type Counts, count } from './counts.js'
import { type BenchDatabase, openDatabase, openSetting, tidy, versionOf } from './database.js'
import { compareExpress, expressConnections } from './express.js'
import { machine } from './machine.js'
import { type Compared, compare, type Plan } from './rounds.js'
import { contenderOf, type Scenario } from './scenario.js'
import { finishKeys, scenarios } from './scenarios.js'

export interface RunPlan extends Plan {
  readonly concurrencies: readonly number[]
  readonly finishedKeys: number
  readonly countedOperations: number
  readonly sizedKeys: number
  wants(id: string): boolean
  progress(line: string): void
}

/** Compared with {@link bare} at one concurrency. */
export interface ComparedAt extends Compared {
  readonly concurrency: number
  /** Id of the bare way; its own for itself. */
  readonly bare: string
}

export interface Run {
  readonly machine: string
  readonly rounds: number
  readonly compared: readonly ComparedAt[]
  readonly counts: readonly ({ readonly id: string; readonly against: string | undefined } & Counts)[]
  readonly bytes: readonly KeyBytes[]
}

export async function runAll(plan: RunPlan): Promise<Run> {
  plan.progress('starting PostgreSQL')
  const database = await openDatabase()
  try {
    const wanted = scenarios.filter(({ id, against }) => against !== undefined && plan.wants(id))
    const bares = scenarios.filter(({ id }) => wanted.some(({ against }) => against === id))
    const bytes = await sizeAll(database, plan)
    const finished = await finish(database, plan)
    const counts = []
    for (const scenario of [...bares, ...wanted]) {
      plan.progress(`counting: ${scenario.title}`)
      const counted = await count(database, scenario, finished, plan.countedOperations)
      counts.push({ id: scenario.id, against: scenario.against, ...counted })
    }
    const compared: ComparedAt[] = []
    for (const bare of bares) {
      const others = wanted.filter(({ against }) => against === bare.id)
      for (const concurrency of plan.concurrencies)
        compared.push(...(await compareAt(database, plan, finished, bare, others, concurrency)))
    }
    if (plan.wants('express')) compared.push(...(await throughExpress(database, plan)))
    return { machine: await describe(database), rounds: plan.rounds, compared, counts, bytes }
  } finally {
    await database.close()
  }
}

async function finish(database: BenchDatabase, plan: RunPlan): Promise<string[]> {
  plan.progress(`finishing ${plan.finishedKeys} keys to replay`)
  const setting = await openSetting(database.connectionString, 8, [])
  return finishKeys(setting, plan.finishedKeys).finally(setting.close)
}

async function sizeAll(database: BenchDatabase, plan: RunPlan): Promise<KeyBytes[]> {
  const bytes: KeyBytes[] = []
  for (const scenario of scenarios.filter(({ id }) => id === 'transaction' || id === 'transaction-text')) {
    if (!plan.wants(`bytes-${scenario.id}`)) continue
    plan.progress(`bytes a key: ${scenario.title}, ${plan.sizedKeys} keys`)
    bytes.push(await bytesOf(database, scenario, plan.sizedKeys))
  }
  return bytes
}

async function compareAt(
  database: BenchDatabase,
  plan: RunPlan,
  finished: readonly string[],
  bare: Scenario,
  others: readonly Scenario[],
  concurrency: number,
): Promise<ComparedAt[]> {
  plan.progress(`${bare.title} and what is compared with it, concurrency ${concurrency}`)
  await tidy(database)
  const setting = await openSetting(database.connectionString, concurrency, finished)
  try {
    const contender = (one: Scenario) => contenderOf(one, setting, concurrency)
    const compared = await compare(contender(bare), others.map(contender), plan)
    return compared.map((one) => ({ ...one, concurrency, bare: bare.id }))
  } finally {
    await setting.close()
  }
}

async function throughExpress(database: BenchDatabase, plan: RunPlan): Promise<ComparedAt[]> {
  plan.progress('Express end to end')
  await tidy(database)
  const compared = await compareExpress(database.connectionString, plan)
  return compared.map((one) => ({ ...one, concurrency: expressConnections, bare: 'express-bare' }))
}

async function describe(database: BenchDatabase): Promise<string> {
  return `${machine()}, ${await versionOf(database)}`
}
