/** A quick run of the bench: it works, and what no neighbour on the machine can change is what it has to be. Throughput is not judged here. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import type { Run } from '../../bench/run.js'
import { allBlocks } from '../docs/blocks.js'
import { compile } from '../docs/compile.js'

const program = join(import.meta.dirname, '../../build/bench/main.js')
let run: Run

beforeAll(async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--quick', '--json'])
  run = JSON.parse(stdout)
}, 300_000)

test('every scenario is compared with its bare way', () => {
  const ids = new Set(run.compared.map(({ id }) => id))
  expect([...ids].sort()).toEqual([
    'bare',
    'express',
    'express-bare',
    'hot-lease',
    'hot-transaction',
    'js-bare',
    'js-transaction',
    'lease',
    'lease-commit',
    'replay-cache',
    'replay-lease',
    'replay-retry',
    'replay-transaction',
    'select',
    'transaction',
    'transaction-text',
  ])
  for (const { id, bare, ratio, cpu } of run.compared) {
    const numbers = [ratio.low, ratio.median, ratio.high, cpu.low, cpu.median, cpu.high]
    expect(
      numbers.every((number) => Number.isFinite(number) && number >= 0),
      id,
    ).toBe(true)
    if (id === bare) expect(ratio).toEqual({ low: 1, median: 1, high: 1 })
  }
})

function countsOf(id: string) {
  const counts = run.counts.find((one) => one.id === id)
  if (counts === undefined) throw new Error(`${id} was not counted`)
  return counts
}

test.each(['transaction', 'transaction-text'])(
  '%s mode adds one row version to the bare transaction, no round trip, no commit and nothing dead',
  (id) => {
    const bare = countsOf('bare')
    expect(bare).toMatchObject({ roundTrips: 3, commits: 1, rowsInserted: 1 })
    expect(countsOf(id)).toMatchObject({
      roundTrips: bare.roundTrips,
      syncs: bare.syncs,
      commits: bare.commits,
      rowsInserted: bare.rowsInserted + 1,
      rowsUpdated: 0,
      rowsDeleted: 0,
      rowsDead: 0,
    })
  },
)

test('over postgres.js, transaction mode adds one row version, no round trip and nothing dead', () => {
  const bare = countsOf('js-bare')
  expect(bare).toMatchObject({ commits: 1, rowsInserted: 1 })
  expect(countsOf('js-transaction')).toMatchObject({
    roundTrips: bare.roundTrips,
    // The empty query that takes the connection is counted as a commit; it writes nothing, and travels in the packet of the claim.
    commits: bare.commits + 1,
    rowsInserted: bare.rowsInserted + 1,
    rowsUpdated: 0,
    rowsDeleted: 0,
    rowsDead: 0,
  })
})

test('nine of ten cached replays ask nothing of the database', () => {
  // 0.1 each, and a second one for the first few, until the habit says that most calls are retries.
  expect(countsOf('replay-cache').roundTrips).toBeLessThan(0.2)
})

test.each([
  'replay-transaction',
  'replay-lease',
  'replay-retry',
  'replay-cache',
  'hot-transaction',
  'hot-lease',
])('%s writes nothing', (id) => {
  expect(countsOf(id)).toMatchObject({ rowsInserted: 0, rowsUpdated: 0, rowsDeleted: 0, rowsDead: 0 })
})

test.each([
  ['transaction', 520],
  ['transaction-text', 600],
])('a key of %s mode with a reply of 250 bytes costs at most %d bytes, indexes included', (id, most) => {
  const bytes = run.bytes.find((one) => one.id === id)
  expect(bytes).toBeDefined()
  expect(Number(bytes?.table) + Number(bytes?.indexes)).toBeLessThanOrEqual(most)
})

test('the example of docs/bench.md reads what --json writes', async () => {
  const example = await compile(allBlocks().filter((block) => block.run === 'bench-json'))
  const [before, folder] = [process.cwd(), mkdtempSync(join(tmpdir(), 'retrysafe-bench-'))]
  try {
    expect(example.complaints).toBe('')
    writeFileSync(join(folder, 'run.json'), JSON.stringify(run))
    process.chdir(folder)
    const { ratios, extra } = await example.run<{ ratios: Map<string, number>; extra: object }>('bench-json')
    expect(ratios.get('bare at 1')).toBe(1)
    expect(extra).toEqual({ roundTrips: 0, rows: 1 })
  } finally {
    process.chdir(before)
    rmSync(folder, { recursive: true, force: true })
    example.remove()
  }
})
