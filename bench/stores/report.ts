/** A comparison of the stores as Markdown: a table for each client. */
import { cpuCell, ratioCell, table, unique } from '../report.js'
import type { StoreCompared, StoresRun } from './run.js'

export function storesMarkdown(run: StoresRun): string {
  const head = `${[run.machine, ...run.servers].join(', ')}. ${run.rounds} interleaved rounds; throughput × the bare way of the same round, and CPU of the client process per operation in µs, median (quartiles).`
  const clients = unique(run.compared.map(({ client }) => client))
  const leftOut = run.leftOut.map((line) => `Left out: ${line}.`)
  return [
    head,
    ...clients.map((client) => clientTable(run.compared.filter((one) => one.client === client))),
    ...leftOut,
  ].join('\n\n')
}

function clientTable(own: readonly StoreCompared[]): string {
  const concurrencies = unique(own.map(({ concurrency }) => concurrency))
  const header = [
    own[0]?.client ?? '',
    ...concurrencies.map((concurrency) => `throughput at ${concurrency}`),
    ...concurrencies.map((concurrency) => `CPU at ${concurrency}`),
  ]
  const rows = unique(own.map(({ id }) => id)).map((id) => {
    const at = (concurrency: number) => own.find((one) => one.id === id && one.concurrency === concurrency)
    const title = own.find((one) => one.id === id)?.title ?? id
    return [
      title,
      ...concurrencies.map((concurrency) => ratioCell(at(concurrency))),
      ...concurrencies.map((concurrency) => cpuCell(at(concurrency))),
    ]
  })
  return table(header, rows)
}
