/** A run as Markdown, and as a list of what it misses. */
import type { Compared } from './rounds.js'
import type { ComparedAt, Run } from './run.js'
import { scenarios } from './scenarios.js'
import type { Spread } from './statistics.js'
import { byteTargets, countTargets, ratioTargets } from './targets.js'

const titles = new Map(scenarios.map(({ id, title }) => [id, title]))
titles.set('express-bare', 'Express, route without idempotency')
titles.set('express', 'Express, route with `idempotent`')

function titleOf(id: string): string {
  return titles.get(id) ?? id
}

export function markdown(run: Run): string {
  const head = `${run.machine}. ${run.rounds} interleaved rounds; throughput × the bare way of the same round, median (quartiles).`
  return [head, ...inProcessTables(run.compared), expressTable(run.compared), countTable(run), byteTable(run)]
    .filter((part) => part !== '')
    .join('\n\n')
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n')
}

type Cell = (one: ComparedAt | undefined) => string

/** Two tables for each bare way, one column for each concurrency. */
function inProcessTables(compared: readonly ComparedAt[]): string[] {
  const inProcess = compared.filter(({ bare }) => bare !== 'express-bare')
  return unique(inProcess.map(({ bare }) => bare)).flatMap((bare) => {
    const own = inProcess.filter((one) => one.bare === bare)
    return [
      byConcurrency('throughput, at concurrency', own, ratioCell),
      byConcurrency('CPU of the client process per operation, µs', own, cpuCell),
    ]
  })
}

function byConcurrency(corner: string, own: readonly ComparedAt[], cell: Cell): string {
  const concurrencies = unique(own.map(({ concurrency }) => concurrency))
  const rows = unique(own.map(({ id }) => id)).map((id) => [
    titleOf(id),
    ...concurrencies.map((concurrency) =>
      cell(own.find((one) => one.id === id && one.concurrency === concurrency)),
    ),
  ])
  return table([corner, ...concurrencies.map(String)], rows)
}

export function ratioCell(one: ComparedAt | undefined): string {
  if (one === undefined) return ''
  if (one.id === one.bare) return `1 (here ${Math.round(one.perSecond)} a second)`
  const target = ratioTargets[one.id]?.[one.concurrency]
  // Two digits tell nothing of a hundredth: in memory the bare way is a hundred times as fast.
  const digits = one.ratio.median < 0.1 ? 4 : 2
  return `${spread(one.ratio, digits)}${target === undefined ? '' : `, to reach ${target}`}`
}

function expressTable(compared: readonly ComparedAt[]): string {
  const rows = compared
    .filter(({ bare }) => bare === 'express-bare')
    .map((one) => [titleOf(one.id), ratioCell(one), cpuCell(one)])
  return table(['end to end, 16 connections', 'throughput', 'CPU of the service per request, µs'], rows)
}

export function cpuCell(one: Compared | undefined): string {
  return one === undefined ? '' : spread(one.cpu, one.cpu.median < 1 ? 2 : 0)
}

function spread({ median, low, high }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}

function countTable(run: Run): string {
  const header = ['per operation', 'round trips', 'Syncs', 'commits', 'rows + / ± / −', 'dead', 'WAL bytes']
  const rows = run.counts.map((one) => [
    titleOf(one.id),
    plain(one.roundTrips),
    plain(one.syncs),
    plain(one.commits),
    [one.rowsInserted, one.rowsUpdated, one.rowsDeleted].map(plain).join(' / '),
    plain(one.rowsDead),
    one.walBytes.toFixed(0),
  ])
  return table(header, rows)
}

/** Whole numbers as such: they are exact, and a fraction is news. */
function plain(value: number): string {
  return String(Number(value.toFixed(2)))
}

function byteTable(run: Run): string {
  const rows = run.bytes.map(({ id, table: own, indexes }) => [
    titleOf(id),
    own.toFixed(0),
    indexes.toFixed(0),
    `${(own + indexes).toFixed(0)}${byteTargets[id] === undefined ? '' : `, at most ${byteTargets[id]}`}`,
  ])
  return table(['bytes a key', 'table', 'indexes', 'together'], rows)
}

/** What the run misses, one line each. */
export function misses(run: Run): string[] {
  const found: string[] = []
  for (const { id, concurrency, ratio } of run.compared) {
    const target = ratioTargets[id]?.[concurrency]
    if (target !== undefined && !(ratio.median >= target))
      found.push(`${titleOf(id)}, concurrency ${concurrency}: ${ratio.median.toFixed(2)} of ${target}`)
  }
  for (const { id, table: own, indexes } of run.bytes) {
    const most = byteTargets[id]
    if (most !== undefined && !(own + indexes <= most))
      found.push(`${titleOf(id)}: ${(own + indexes).toFixed(0)} bytes a key of ${most}`)
  }
  const bare = run.counts.find(({ id }) => id === 'bare')
  for (const one of run.counts.filter(({ id }) => id in byteTargets)) {
    for (const [name, most] of Object.entries(countTargets) as [keyof typeof countTargets, number][]) {
      const more = one[name] - (bare?.[name] ?? 0)
      if (!(more <= most))
        found.push(`${titleOf(one.id)}: ${plain(more)} more ${name} than bare, not ${most}`)
    }
  }
  return found
}

export function unique<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)]
}
