/**
 * `npm run bench -- [--quick] [--only id,…] [--json] [--check]`: docs/bench.md says what is measured and how to read it.
 *
 * Progress goes to stderr, the result to stdout. Exit code 0, 1 when `--check` found something below its target, 2 when it could not run.
 */
import { parseArgs } from 'node:util'
import { markdown, misses } from './report.js'
import { type RunPlan, runAll } from './run.js'

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

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
    },
  })
  const plan: RunPlan = {
    ...(values.quick ? quick : full),
    wants: (id) => values.only === undefined || values.only.split(',').some((part) => id.startsWith(part)),
    progress: (line) => process.stderr.write(`${line}\n`),
  }
  const run = await runAll(plan)
  process.stdout.write(`${values.json ? JSON.stringify(run, undefined, 2) : markdown(run)}\n`)
  if (!values.check) return 0
  const missed = misses(run)
  for (const line of missed) process.stderr.write(`below target: ${line}\n`)
  return missed.length === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 2
}
