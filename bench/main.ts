/**
 * `npm run bench -- [--quick] [--only id,…] [--json] [--check]`: docs/bench.md says what is measured and how to read it.
 * `npm run bench -- stores [--quick] [--only store,…] [--json]` compares every store with the bare work on its own server.
 *
 * Progress goes to stderr, the result to stdout. Exit code 0, 1 when `--check` found something below its target, 2 when it could not run.
 */
import { parseArgs } from 'node:util'
import { markdown, misses } from './report.js'
import { type RunPlan, runAll } from './run.js'
import { storesMarkdown } from './stores/report.js'
import { runStores } from './stores/run.js'

/** Half a minute: to see that everything works and to count, not to read throughput from. */
const quick = {
  rounds: 3,
  turnMs: 50,
  concurrencies: [1, 8],
  finishedKeys: 300,
  countedOperations: 100,
  sizedKeys: 10_000,
}
/** Many short rounds rather than few long ones: a neighbour's burst of a second then spoils some rounds instead of bending all of them. */
const full = {
  rounds: 30,
  turnMs: 250,
  concurrencies: [1, 8, 32],
  finishedKeys: 4000,
  countedOperations: 500,
  sizedKeys: 20_000,
}

/** A minute and a half, and ten. What waits for a disk is a matter of milliseconds, so turns may be shorter than above. */
const quickStores = { rounds: 3, turnMs: 30, concurrencies: [1, 8], finishedKeys: 100 }
const fullStores = { rounds: 20, turnMs: 200, concurrencies: [1, 8], finishedKeys: 1000 }

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
    },
  })
  const only = values.only?.split(',')
  const [what, ...more] = positionals
  if (more.length > 0 || (what !== undefined && what !== 'stores'))
    throw new Error(`there is no bench ${positionals.join(' ')}, only stores`)
  if (what === 'stores' && values.check) throw new Error('there are no targets for stores to --check')
  if (what === 'stores') {
    const run = await runStores({ ...(values.quick ? quickStores : fullStores), only, progress })
    print(values.json ? run : storesMarkdown(run))
    return 0
  }
  const plan: RunPlan = {
    ...(values.quick ? quick : full),
    wants: (id) => only === undefined || only.some((part) => id.startsWith(part)),
    progress,
  }
  const run = await runAll(plan)
  print(values.json ? run : markdown(run))
  if (!values.check) return 0
  const missed = misses(run)
  for (const line of missed) process.stderr.write(`below target: ${line}\n`)
  return missed.length === 0 ? 0 : 1
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`)
}

function print(result: string | object): void {
  process.stdout.write(`${typeof result === 'string' ? result : JSON.stringify(result, undefined, 2)}\n`)
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 2
}
