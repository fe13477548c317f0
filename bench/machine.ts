/** Where a run took place, for the head of its result. */
import { cpus, totalmem } from 'node:os'

export function machine(): string {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  return `${cpus().length} cores, ${memory}, Node ${process.versions.node}`
}
